"""Streams groups by the methods of the testing kit: tasks and their owners, faults, a missing topic, a shutdown."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.core.views import StreamsGroupView, StreamsMemberView
from rejoin.coordinator.testing import NoAnswer, NotReached, OperationRefused, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from tests.coordinator.control.samples import parse
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, WORDS
from tests.coordinator.testing.streams_member import APPLICATION, AT_ONCE, TOPICS, StreamsThread, running_threads

STANDBYS = AT_ONCE | {"group.streams.num.standby.replicas": 1}


def owners(view: StreamsGroupView | None) -> dict[str, str | None]:
    """The member that runs each task."""
    assert view is not None
    return {f"{each.subtopology_id}_{each.partition}": each.active for each in view.tasks}


def codes(answer: Any) -> set[StreamsStatus]:
    return {StreamsStatus(each.status_code) for each in answer.status}


@pytest.mark.parametrize("brokers", [1, 3])
async def test_each_task_has_its_owner_and_its_standby(brokers: int) -> None:
    async with running(clock="virtual", topics=TOPICS, brokers=brokers, settings=STANDBYS, socket=False) as coordinator:
        assert await coordinator.streams_state(APPLICATION) is None
        a, b = await running_threads(coordinator, "a", "b")
        view = await coordinator.wait_for_streams_group(APPLICATION, tasks=4, standbys=2, ready=True)
        assert owners(view) == {"0_0": "a", "0_1": "b", "1_0": "a", "1_1": "b"}
        stateful = {each.partition: (each.active, each.standby) for each in view.tasks if each.subtopology_id == "1"}
        assert stateful == {0: ("a", ["b"]), 1: ("b", ["a"])}
        assert [(each.topic, each.kind, each.partitions) for each in view.internal_topics] == [
            (WORDS, "repartition", 2),
            (COUNTS, "changelog", 2),
        ]
        assert [(each.source_topics, each.tasks) for each in view.subtopologies] == [([LINES], 2), ([], 2)]
        assert (view.not_ready, view.topology_epoch, a.epoch, b.epoch) == (None, 0, view.group_epoch, view.group_epoch)


async def test_a_session_that_expires_moves_tasks_to_the_standby() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=STANDBYS, socket=False) as coordinator:
        a, b = await running_threads(coordinator, "a", "b")
        epoch = b.epoch
        waiting = asyncio.ensure_future(coordinator.wait_for_streams_group(APPLICATION, members=1, tasks=4))
        assert await coordinator.expire(APPLICATION, "a") == "a"
        await b.beat()
        view = await waiting
        assert set(owners(view).values()) == {"b"}
        assert view.group_epoch > epoch
        assert (await a.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_is_kicked_though_leave_group_removes_none() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        a, _ = await running_threads(coordinator, "a", "b")
        assert await coordinator.kick(APPLICATION, client_id="client-a") == "a"
        assert (await a.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await coordinator.wait_for_streams_group(APPLICATION, members=1)


async def test_a_task_that_is_given_up_has_no_other_owner_until_then() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        [a] = await running_threads(coordinator, "a")
        b = StreamsThread(coordinator, "b")
        await b.join()
        await a.beat(active_tasks=None, standby_tasks=None, warmup_tasks=None)
        view = await coordinator.wait_for_streams_group(APPLICATION, state="Reconciling", tasks=2, member="client-a")
        moving = {each.partition: (each.active, each.revoking, each.target) for each in view.tasks}
        assert moving[1] == (None, "a", "b")
        with pytest.raises(
            NotReached, match=r"did not have Stable, 4 tasks .*; tasks: 0_0 \(a\), 0_1 \(a, to give up\)"
        ):
            await coordinator.wait_for_streams_group(APPLICATION, state="Stable", tasks=4, timeout_ms=0)
        for each in (a, b):
            await each.beat()
        await coordinator.wait_for_streams_group(APPLICATION, tasks=2, member="process-b")


async def test_a_source_topic_goes_and_comes_back() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        [a] = await running_threads(coordinator, "a")
        await coordinator.delete_topic(LINES)
        assert StreamsStatus.MISSING_SOURCE_TOPICS in codes(await a.beat())
        view = await coordinator.wait_for_streams_group(APPLICATION, state="NotReady", ready=False, tasks=0)
        assert view.not_ready == "Source topics are missing: lines."
        with pytest.raises(NotReached, match="not ready: Source topics are missing: lines"):
            await coordinator.wait_for_streams_group(APPLICATION, ready=True, timeout_ms=0)
        await coordinator.set_topic(LINES, 2)
        for _ in range(2):
            await a.beat()
        await coordinator.wait_for_streams_group(APPLICATION, state="Stable", tasks=4)
        with pytest.raises(OperationRefused, match="there is no topic 'line'; is it 'lines'"):
            await coordinator.delete_topic("line")


async def test_an_application_is_shut_down_and_its_members_learn_by_whom() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        [a] = await running_threads(coordinator, "a")
        view = await coordinator.shut_down_application(APPLICATION, requester="operator")
        assert (view.shutdown_requested_by, len(view.members), view.state) == ("operator", 1, "Stable")
        assert StreamsStatus.SHUTDOWN_APPLICATION in codes(await a.beat())
        with pytest.raises(OperationRefused, match="'a' is a member"):
            await coordinator.shut_down_application(APPLICATION, requester="a")
        await coordinator.kick(APPLICATION, "a")
        with pytest.raises(OperationRefused, match="no members"):
            await coordinator.shut_down_application(APPLICATION)
        with pytest.raises(OperationRefused, match="there is no group 'ap'; is it 'app'"):
            await coordinator.shut_down_application("ap")


@pytest.mark.parametrize("when", ["before", "after", "drop_request", "drop_response"])
async def test_a_heartbeat_of_one_member_fails_once(when: Any) -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        a, b = await running_threads(coordinator, "a", "b")
        lost = when.startswith("drop")
        error = None if lost else "FENCED_MEMBER_EPOCH"
        fault = await coordinator.add_fault(keys="StreamsGroupHeartbeat", member="a", when=when, error=error, count=1)
        assert (await b.beat()).error_code == ErrorCode.NONE
        if lost:
            with pytest.raises(NoAnswer):
                await a.beat()
        else:
            assert (await a.beat()).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert fault.hits == 1
        assert (await a.beat()).error_code == ErrorCode.NONE


async def test_a_heartbeat_is_held_until_it_is_released() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        [a] = await running_threads(coordinator, "a")
        fault = await coordinator.add_fault(keys="StreamsGroupHeartbeat", member="a", pause=True)
        held = asyncio.ensure_future(a.beat())
        await fault.wait(1)
        assert not held.done()
        await fault.release()
        async with asyncio.timeout(30):
            assert (await held).error_code == ErrorCode.NONE


@pytest.mark.parametrize("api", ["StreamsGroupDescribe", "StreamsGroupTopologyDescriptionUpdate"])
async def test_the_other_apis_fail_for_one_group(api: str) -> None:
    bodies: dict[str, Any] = {
        "StreamsGroupDescribe": {"groupIds": [APPLICATION], "includeAuthorizedOperations": False},
        "StreamsGroupTopologyDescriptionUpdate": {
            "groupId": APPLICATION,
            "memberId": "a",
            "topologyEpoch": 0,
            "topologyDescription": {"subtopologies": [], "globalStores": []},
        },
    }
    async with running(clock="virtual", topics=TOPICS, settings=AT_ONCE, socket=False) as coordinator:
        await running_threads(coordinator, "a")
        await coordinator.add_fault(keys=api, group=APPLICATION, error="COORDINATOR_LOAD_IN_PROGRESS", count=1)
        answer: Any = await coordinator.call(parse(api, bodies[api]))
        found = answer.groups[0].error_code if api == "StreamsGroupDescribe" else answer.error_code
        assert found == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_groups_of_other_kinds_have_no_tasks() -> None:
    async with running(clock="virtual", topics={"orders": 1}, socket=False) as coordinator:
        body = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["orders"]}
        await coordinator.call(parse("ShareGroupHeartbeat", body))
        with pytest.raises(OperationRefused, match="group 'g' is no streams group; its protocol type is 'share'"):
            await coordinator.streams_state("g")


async def test_over_http_a_wait_answers_with_the_tasks() -> None:
    async with (
        running(clock="virtual", topics=TOPICS, settings=AT_ONCE) as coordinator,
        aiohttp.ClientSession() as session,
    ):
        await running_threads(coordinator, "a")
        wanted = {"group": APPLICATION, "tasks": 4, "state": "stable"}
        async with session.post(f"{coordinator.url}/control/streams-groups/wait", json=wanted) as answered:
            group = (await answered.json())["group"]
        assert [(each["subtopology_id"], each["partition"], each["active"]) for each in group["tasks"]] == [
            ("0", 0, "a"),
            ("0", 1, "a"),
            ("1", 0, "a"),
            ("1", 1, "a"),
        ]
        member = StreamsMemberView.model_validate(group["members"][0])
        assert (member.process_id, member.client_id) == ("process-a", "client-a")
