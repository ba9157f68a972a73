"""A streams group whose coordinator goes in the middle of a revocation: another one replays it and goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.state import StreamsMemberState
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, WORDS
from tests.coordinator.durability.members import SETTINGS
from tests.coordinator.in_process_brokers.test_leaders import metadata
from tests.coordinator.leadership.nodes import Nodes, until
from tests.coordinator.testing.streams_member import APPLICATION, AT_ONCE, TOPICS, StreamsThread

ELSEWHERE = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
AT_ONCE_OF_NODES: dict[str, Any] = {name.replace(".", "_"): value for name, value in AT_ONCE.items()}
DURABLE = (
    *("epoch", "metadata_hash", "assignment_epoch", "assignment_at", "targets", "validated_topology_epoch"),
    *("assignment_configs", "stored_description_epoch", "failed_description_epoch", "topology", "static_members"),
    *("state", "holders", "_read_by", "_stable_at"),
)
"""The attributes of a group that come from its records, beside its members."""


class Coordinators:
    """The node that members of the tests ask: the one that leads their group, as soon as there is one."""

    def __init__(self, *apps: App) -> None:
        self.apps = list(apps)

    async def call(self, request: Request, version: int, client_id: str) -> Any:
        async with asyncio.timeout(60):
            while True:
                for app in self.apps:
                    context = Context(version, client_id, "/127.0.0.1")
                    answer: Any = await app.runtime.submit(request, context).answer()
                    if answer.error_code not in ELSEWHERE:
                        return answer
                await asyncio.sleep(0.01)


def state_of(node: Any) -> dict[str, Any] | None:
    """All that is durable of the group, as a node that leads it has it in memory."""
    for led in node._groups.by_partition.values():
        group = led.machine.groups.get(APPLICATION)
        if isinstance(group, StreamsGroup):
            members = {each.member_id: (each.metadata, each.current) for each in group.members.values()}
            return {name: getattr(group, name) for name in DURABLE} | {"members": members}
    return None


def states(*nodes: Any) -> list[dict[str, Any]]:
    return [state for state in map(state_of, nodes) if state is not None]


async def in_a_revocation(kit: Any) -> tuple[StreamsThread, StreamsThread]:
    """A member that has been asked to give up tasks and has not yet, and one that waits for them."""
    first, second = StreamsThread(kit, "a"), StreamsThread(kit, "b")
    await first.join()
    async with asyncio.timeout(60):
        while not owned(first):
            # The topics are made meanwhile.
            await first.beat()
            await asyncio.sleep(0.005)
    assert owned(first) == {"0": (0, 1), "1": (0, 1)}
    await second.join()
    held = first.tasks
    await first.beat()
    assert len(first.tasks["active_tasks"]) == len(held["active_tasks"])
    assert (owned(second), first.tasks != held) == ({}, True)
    return first, second


def owned(thread: StreamsThread) -> dict[str, tuple[int, ...]]:
    return {each.subtopology_id: each.partitions for each in thread.tasks["active_tasks"]}


async def finish(*threads: StreamsThread) -> None:
    """The members go on until each has its share: every task is active once."""
    for _ in range(3):
        for thread in threads:
            answer = await thread.beat()
            assert (answer.error_code, answer.status) == (ErrorCode.NONE, ())
    tasks = Counter((each, index) for one in threads for each, found in owned(one).items() for index in found)
    assert tasks == {(subtopology, index): 1 for subtopology in "01" for index in range(2)}
    assert len({sum(map(len, owned(one).values())) for one in threads}) == 1, "each has as many"


def is_revoking(state: dict[str, Any]) -> bool:
    return bool(state["members"]["a"][1].state is StreamsMemberState.UNREVOKED_TASKS)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_restart_in_the_middle_of_a_revocation(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store: dict[str, Any] = {"data": tmp_path / "data"}
    if kind == "postgres":
        store = {"store": request.getfixturevalue("postgres")}
    settings = SETTINGS.model_copy(update=AT_ONCE_OF_NODES)
    options = Options(settings=settings, topics=(InitialTopic(LINES, TOPICS[LINES]),), listen=False, **store)
    async with App(options) as app:
        kit = Coordinators(app)
        threads = await in_a_revocation(kit)
        [live] = states(app.runtime.node)
        assert is_revoking(live)
    async with App(options) as app:
        kit.apps = [app]
        await until(lambda: bool(states(app.runtime.node)), "the group is not loaded")
        assert states(app.runtime.node) == [live]
        await finish(*threads)


async def test_failover_between_nodes_in_the_middle_of_a_revocation(postgres: str) -> None:
    nodes = Nodes(postgres)
    try:
        topics = (InitialTopic(LINES, TOPICS[LINES]),)
        for node_id in (1, 2):
            await nodes.start(node_id, topics=topics, **AT_ONCE_OF_NODES)
        await nodes.until_balanced()
        kit = Coordinators(*nodes.apps.values())
        threads = await in_a_revocation(kit)
        leader = nodes.leader(APPLICATION)
        [live] = states(leader.runtime.node)
        assert is_revoking(live)
        known = [app.runtime.node._topics.by_name for app in nodes.apps.values()]
        await until(lambda: all({COUNTS, WORDS} <= set(each) for each in known), "a topic did not reach every node")
        await nodes.stop(leader.runtime.broker.node_id)
        [left] = nodes.apps.values()
        kit.apps = [left]
        await until(lambda: bool(states(left.runtime.node)), "the group is not loaded")
        assert states(left.runtime.node) == [live]
        await finish(*threads)
    finally:
        await nodes.close()


@pytest.mark.parametrize("way", ["moved", "killed"])
async def test_brokers_of_one_process_hand_the_group_over_in_the_middle_of_a_revocation(way: str) -> None:
    settings: dict[str, str | int] = {**AT_ONCE, "offsets.topic.num.partitions": 3}
    async with running(brokers=3, clock="virtual", topics=TOPICS, socket=False, settings=settings) as coordinator:
        threads = await in_a_revocation(coordinator)
        known = await metadata(coordinator, 1)
        internal = [each for each in known.topics if each.name in (COUNTS, WORDS)]
        leaders = {partition.leader_id for each in internal for partition in each.partitions}
        assert (len(internal), len(leaders) > 1) == (2, True), "several brokers lead the internal topics"
        before = await by_broker(coordinator)
        [(broker, live)] = before.items()
        assert is_revoking(live)
        if way == "moved":
            await coordinator.move_leader(group=APPLICATION)
        else:
            await coordinator.kill_broker(broker)
            await coordinator.advance(10_000)
        after = await by_broker(coordinator)
        if way == "killed":
            # The memory of the process that was killed is still there to look at.
            del after[broker]
        assert (broker in after, [*after.values()]) == (False, [live])
        await finish(*threads)


async def test_a_member_that_does_not_revoke_has_its_rebalance_timeout_from_the_new_coordinator() -> None:
    settings: dict[str, str | int] = {**AT_ONCE, "offsets.topic.num.partitions": 3}
    async with running(brokers=3, clock="virtual", topics=TOPICS, socket=False, settings=settings) as coordinator:
        first, second = await in_a_revocation(coordinator)
        held = first.tasks
        await coordinator.advance(40_000)
        await coordinator.move_leader(group=APPLICATION)
        for _ in range(2):
            await coordinator.advance(29_000)
            first.tasks = held
            await second.beat()
            assert (await beat_without_tasks(first)).error_code is ErrorCode.NONE
        await coordinator.advance(2_000)
        assert (await beat_without_tasks(first)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
        await second.beat()
        await second.beat()
        assert owned(second) == {"0": (0, 1), "1": (0, 1)}


async def beat_without_tasks(thread: StreamsThread) -> Any:
    """A heartbeat that keeps the session, and does not say that tasks were revoked."""
    held, thread.tasks = thread.tasks, {}
    try:
        return await thread.beat()
    finally:
        thread.tasks = held


async def by_broker(coordinator: GroupCoordinator) -> dict[int, dict[str, Any]]:
    """The group in memory, by the broker that leads it."""
    nodes = await coordinator._ask(lambda control: [control._runtime.broker_named(each).node for each in (1, 2, 3)])
    states = ((broker, state_of(node)) for broker, node in enumerate(nodes, 1))
    return {broker: state for broker, state in states if state is not None}
