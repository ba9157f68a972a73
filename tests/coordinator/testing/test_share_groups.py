"""Share groups by the methods of the testing kit: records in flight, their locks, a poison message."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.core.views import RecordRunView, ShareStateView
from rejoin.coordinator.testing import GroupCoordinator, NoAnswer, NotReached, OperationRefused, running
from rejoin.protocol.errors import ErrorCode
from rejoin.transcript.player import play
from tests.coordinator.control.samples import parse
from tests.coordinator.testing.share_member import ACCEPT, GROUP, RELEASE, TOPICS, configure, member_of


def runs(state: ShareStateView | None) -> list[tuple[int, int, str, int, str | None, int | None]]:
    """Each run of records: first and last offset, state, delivery count, holder, ms left of the lock."""
    assert state is not None
    return [
        (each.first_offset, each.last_offset, each.state, each.delivery_count, each.member_id, each.lock_ms)
        for each in state.records
    ]


@pytest.mark.parametrize("brokers", [1, 3])
async def test_the_state_of_a_share_partition_has_each_record_in_flight(brokers: int) -> None:
    async with running(clock="virtual", topics=TOPICS, brokers=brokers, socket=False) as coordinator:
        leader = None if brokers == 1 else (await coordinator.partition("jobs", 0)).leader
        member = await member_of(coordinator, leader=leader)
        assert await coordinator.share_state(GROUP, "jobs", 0) is None
        if brokers > 1:
            # The first fetch creates the topic of the share coordinator, and its leader asks again after a second.
            assert await member.fetch(max_wait_ms=0) == []
            await coordinator.advance(1_000)
        await coordinator.produce("jobs", 0, 5)
        assert await member.fetch() == [(0, 4, 1)]
        await coordinator.advance(10_000)
        assert runs(await coordinator.share_state(GROUP, "jobs", 0)) == [(0, 4, "ACQUIRED", 1, "a", 20_000)]
        assert await member.acknowledge(0, 1, ACCEPT) == 0
        assert await member.acknowledge(3, 3, RELEASE) == 0
        state = await coordinator.share_state(GROUP, "jobs", 0)
        assert state is not None
        assert (state.group_id, state.topic, state.partition, state.state) == (GROUP, "jobs", 0, "ACTIVE")
        assert (state.start_offset, state.end_offset) == (2, 4)
        assert runs(state) == [
            (0, 1, "ACKNOWLEDGED", 1, None, None),
            (2, 2, "ACQUIRED", 1, "a", 20_000),
            (3, 3, "AVAILABLE", 1, None, None),
            (4, 4, "ACQUIRED", 1, "a", 20_000),
        ]


async def test_a_test_waits_for_records_in_the_hands_of_members() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        waiting = asyncio.ensure_future(coordinator.wait_for_share_group(GROUP, members=1, acquired=3))
        await coordinator.produce("jobs", 0, 3)
        await member.fetch()
        [state] = await waiting
        assert runs(state) == [(0, 2, "ACQUIRED", 1, "a", 30_000)]
        await member.acknowledge(1, 1, RELEASE)
        [state] = await coordinator.wait_for_share_group(GROUP, acquired=2, available=1, topic="jobs")
        assert (state.start_offset, state.end_offset) == (0, 2)


async def test_a_wait_that_fails_says_what_is_in_flight() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 2)
        await member.fetch()
        with pytest.raises(NotReached, match=r"did not have 5 acquired within 0 ms; .*jobs-0 0 to 1 ACQUIRED"):
            await coordinator.wait_for_share_group(GROUP, acquired=5, timeout_ms=0)
        with pytest.raises(OperationRefused, match="there is no topic 'job'; is it 'jobs'"):
            await coordinator.wait_for_share_group(GROUP, topic="job")


async def test_over_http_a_wait_answers_with_the_share_partitions() -> None:
    async with running(clock="virtual", topics=TOPICS) as coordinator, aiohttp.ClientSession() as session:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        wanted = {"group": GROUP, "acquired": 1}
        async with session.post(f"{coordinator.url}/control/share-groups/wait", json=wanted) as answered:
            assert [each["topic"] for each in (await answered.json())["share_partitions"]] == ["jobs"]


async def test_requests_for_records_go_to_the_leader_of_the_partition() -> None:
    async with running(clock="virtual", topics=TOPICS, brokers=3, socket=False) as coordinator:
        member = await member_of(coordinator)
        assert await member.fetch(max_wait_ms=0) == []
        await coordinator.advance(1_000)
        await coordinator.produce("jobs", 0, 2)
        assert await member.fetch() == [(0, 1, 1)]
        assert await member.acknowledge(0, 1, ACCEPT) == ErrorCode.NONE


async def test_a_share_coordinator_that_is_away_is_asked_again() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        await coordinator.fail_persister(GROUP, count=2)
        waiting = asyncio.ensure_future(member.acknowledge(0, 0, ACCEPT))
        await asyncio.sleep(0)
        for _ in range(2):
            assert not waiting.done()
            assert "persister" in [each.timer for each in (await coordinator.advance(2_000)).fired]
        async with asyncio.timeout(30):
            assert await waiting == ErrorCode.NONE


async def test_a_share_coordinator_that_refuses_leaves_the_record_to_its_holder() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        await coordinator.fail_persister(GROUP, error="INVALID_REQUEST", count=-1)
        assert await member.acknowledge(0, 0, ACCEPT) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert runs(await coordinator.share_state(GROUP, "jobs", 0)) == [(0, 0, "ACQUIRED", 1, "a", 30_000)]
        await coordinator.fail_persister(GROUP, count=0)
        assert await member.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE


async def test_a_group_whose_state_is_not_initialised_gets_no_partitions() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await coordinator.fail_persister(GROUP, "initialize", error="INVALID_REQUEST")
        await member_of(coordinator)
        transcript = await coordinator.transcript()
        assert "could not be initialised" in transcript


async def test_settings_of_a_group_are_set_and_taken_back() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.set_group(
            GROUP, {"share.record.lock.duration.ms": 15_000, "share.renew.acknowledge.enable": False}
        )
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        assert runs(await coordinator.share_state(GROUP, "jobs", 0)) == [(0, 0, "ACQUIRED", 1, "a", 15_000)]
        await coordinator.set_group(GROUP, {"share.record.lock.duration.ms": None})
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        assert runs(await coordinator.share_state(GROUP, "jobs", 0))[1] == (1, 1, "ACQUIRED", 1, "a", 30_000)


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({"share.lock": 1}, "is not a setting of a group"),
        ({"share.auto.offset.reset": "first"}, "expected earliest, latest or by_duration"),
        ({}, "configs"),
    ],
)
async def test_settings_that_no_group_can_have_are_refused(configs: dict[str, Any], problem: str) -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        with pytest.raises((OperationRefused, ValueError), match=problem):
            await coordinator.set_group(GROUP, configs)


async def test_numbers_that_make_no_sense_are_refused() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        with pytest.raises(ValueError, match="count"):
            await coordinator.fail_persister(GROUP, count=-2)
        with pytest.raises(ValueError, match="acquired"):
            await coordinator.wait_for_share_group(GROUP, acquired=-1)


async def test_settings_of_a_group_over_http() -> None:
    async with running(topics=TOPICS) as coordinator, aiohttp.ClientSession() as session:
        body = {"group": GROUP, "configs": {"share.record.lock.duration.ms": 20_000, "share.auto.offset.reset": None}}
        async with session.post(f"{coordinator.url}/control/groups/configs", json=body) as response:
            assert response.status == 200
            configs = {"share.record.lock.duration.ms": "20000", "share.auto.offset.reset": None}
            assert await response.json() == {"group": GROUP, "configs": configs}


APIS = ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_each_api_of_members_can_fail_as_a_whole(api: str, when: str) -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        lists: dict[str, Any] = {"topics": [], "forgottenTopicsData": []}
        body = {"groupId": GROUP, "memberId": "m", "memberEpoch": 0, "shareSessionEpoch": 0, **lists}
        body |= {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1, "maxRecords": 1, "batchSize": 1}
        fields = {name: body[name] for name in BODIES[api]}
        await coordinator.add_fault(keys=api, when=when, error="COORDINATOR_NOT_AVAILABLE")  # type: ignore[arg-type]
        answer: Any = await coordinator.call(parse(api, fields))
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


LIMITS = ("maxWaitMs", "minBytes", "maxBytes", "maxRecords", "batchSize")
BODIES = {
    "ShareGroupHeartbeat": ("groupId", "memberId", "memberEpoch"),
    "ShareFetch": ("groupId", "memberId", "shareSessionEpoch", *LIMITS, "topics", "forgottenTopicsData"),
    "ShareAcknowledge": ("groupId", "memberId", "shareSessionEpoch", "topics"),
}


async def test_one_partition_of_an_acknowledgement_can_fail() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        await coordinator.add_fault(keys="ShareAcknowledge", topic="jobs", partitions=7, error="NOT_LEADER_OR_FOLLOWER")
        accepted = {"acknowledgementBatches": [{"firstOffset": 0, "lastOffset": 0, "acknowledgeTypes": [ACCEPT]}]}
        partitions = [{"partitionIndex": index, **accepted} for index in (0, 7)]
        topics = [{"topicId": (await coordinator.set_topic("jobs", 1)).topic_id, "partitions": partitions}]
        body = {"groupId": GROUP, "memberId": "a", "shareSessionEpoch": 1, "topics": topics}
        answer: Any = await coordinator.call(parse("ShareAcknowledge", body), client_id="a")
        found = {each.partition_index: each.error_code for topic in answer.responses for each in topic.partitions}
        assert found == {0: ErrorCode.NONE, 7: ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize("when", ["drop_request", "drop_response"])
async def test_an_acknowledgement_that_is_lost_counts_if_the_request_arrived(when: str) -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        await coordinator.add_fault(keys="ShareAcknowledge", when=when)  # type: ignore[arg-type]
        with pytest.raises(NoAnswer):
            await member.acknowledge(0, 0, ACCEPT)
        await coordinator.wait_for_share_group(GROUP, acquired=1 if when == "drop_request" else 0)


@pytest.mark.parametrize("api", ["InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"])
async def test_requests_of_other_nodes_for_state_can_fail(api: str) -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        topic_id = (await coordinator.set_topic("jobs", 1)).topic_id
        partition = {"partition": 0, "stateEpoch": 1, "leaderEpoch": 0, "startOffset": 0, "stateBatches": []}
        await coordinator.add_fault(keys=api, error="NOT_COORDINATOR")
        kept = STATE_FIELDS[api]
        topics = [{"topicId": topic_id, "partitions": [{name: partition[name] for name in kept}]}]
        answer: Any = await coordinator.call(parse(api, {"groupId": GROUP, "topics": topics}))
        assert answer.results[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


STATE_FIELDS = {
    "InitializeShareGroupState": ("partition", "stateEpoch", "startOffset"),
    "ReadShareGroupState": ("partition", "leaderEpoch"),
    "WriteShareGroupState": ("partition", "stateEpoch", "leaderEpoch", "startOffset", "stateBatches"),
}


async def test_over_http_the_state_has_the_same_fields() -> None:
    async with running(clock="virtual", topics=TOPICS) as coordinator, aiohttp.ClientSession() as session:
        url = f"{coordinator.url}/control/share-groups/state?group={GROUP}&topic=jobs&partition=0"
        async with session.get(url) as answered:
            assert await answered.json() == {"share_partition": None}
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        async with session.get(url) as answered:
            shown = (await answered.json())["share_partition"]
    assert shown.keys() == ShareStateView.model_fields.keys()
    assert [each.keys() for each in shown["records"]] == [RecordRunView.model_fields.keys()]


async def test_a_topic_or_partition_that_does_not_exist_is_named() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        with pytest.raises(OperationRefused, match="there is no topic 'job'; is it 'jobs'"):
            await coordinator.share_state(GROUP, "job", 0)
        with pytest.raises(OperationRefused, match="has no partition 7; expected 0 to 0"):
            await coordinator.share_state(GROUP, "jobs", 7)


async def test_a_lock_that_is_ended_gives_its_records_to_the_next_fetch() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        one = await member_of(coordinator, "one")
        two = await member_of(coordinator, "two")
        await coordinator.produce("jobs", 0, 3)
        assert await one.fetch() == [(0, 2, 1)]
        assert runs(await coordinator.expire_lock(GROUP, "jobs", 0, 1)) == [(0, 2, "AVAILABLE", 1, None, None)]
        assert await two.fetch() == [(0, 2, 2)]
        assert await one.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
        assert await two.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE
        await coordinator.expire_lock(GROUP, "jobs", 0, 2)
        state = await coordinator.share_state(GROUP, "jobs", 0)
        assert state is not None
        assert state.start_offset == 1
        assert runs(state) == [
            (0, 0, "ACKNOWLEDGED", 2, None, None),
            (1, 1, "ACQUIRED", 2, "two", 30_000),
            (2, 2, "AVAILABLE", 2, None, None),
        ]


async def test_a_record_is_released_for_its_member_whose_session_goes_on() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        one = await member_of(coordinator, "one")
        two = await member_of(coordinator, "two")
        await coordinator.produce("jobs", 0, 3)
        assert await one.fetch() == [(0, 2, 1)]
        assert runs(await coordinator.release_record(GROUP, "jobs", 0, 1)) == [
            (0, 0, "ACQUIRED", 1, "one", 30_000),
            (1, 1, "AVAILABLE", 1, None, None),
            (2, 2, "ACQUIRED", 1, "one", 30_000),
        ]
        with pytest.raises(OperationRefused, match="no lock on record 1"):
            await coordinator.release_record(GROUP, "jobs", 0, 1)
        assert await two.fetch() == [(1, 1, 2)]
        assert await one.acknowledge(1, 1, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
        assert await one.acknowledge(2, 2, ACCEPT) == ErrorCode.NONE
        transcript = await coordinator.transcript()
    assert "\nrelease jobs:0=1\n" in transcript
    assert play(transcript).text == transcript


async def test_a_lock_that_is_ended_wakes_a_fetch_that_waits() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        one = await member_of(coordinator, "one")
        two = await member_of(coordinator, "two")
        await coordinator.produce("jobs", 0, 1)
        assert await one.fetch() == [(0, 0, 1)]
        waiting = asyncio.ensure_future(two.fetch())
        await asyncio.sleep(0)
        await coordinator.expire_lock(GROUP, "jobs", 0, 0)
        async with asyncio.timeout(30):
            assert await waiting == [(0, 0, 2)]


async def test_without_a_lock_there_is_nothing_to_end() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        with pytest.raises(OperationRefused, match="'jobs-app' has not fetched from jobs-0"):
            await coordinator.expire_lock(GROUP, "jobs", 0, 0)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        with pytest.raises(OperationRefused, match="no lock on record 1 of jobs-0; in flight: 0 to 0 ACQUIRED"):
            await coordinator.expire_lock(GROUP, "jobs", 0, 1)
        await coordinator.expire_lock(GROUP, "jobs", 0, 0)
        with pytest.raises(OperationRefused, match="no lock on record 0 of jobs-0; in flight: 0 to 0 AVAILABLE"):
            await coordinator.expire_lock(GROUP, "jobs", 0, 0)


async def test_a_transcript_says_which_lock_was_ended() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 1)
        await member.fetch()
        await coordinator.expire_lock(GROUP, "jobs", 0, 0)
        transcript = await coordinator.transcript()
    assert "\nexpire-lock jobs:0=0\n" in transcript


@pytest.mark.parametrize("by_clock", [True, False])
async def test_a_poison_message_lands_in_the_dead_letter_topic_after_five_deliveries(by_clock: bool) -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await poison(coordinator, by_clock=by_clock)


async def poison(coordinator: GroupCoordinator, *, by_clock: bool) -> None:
    """A handler that never comes to an end: each lock runs out, after its 30 s or when the test says so."""
    member = await member_of(coordinator)
    await configure(coordinator, errors_deadletterqueue_topic_name="dlq.jobs")
    await coordinator.produce("jobs", 0, ["poison"])
    for delivery in range(1, 6):
        assert await member.fetch() == [(0, 0, delivery)]
        assert runs(await coordinator.share_state(GROUP, "jobs", 0)) == [(0, 0, "ACQUIRED", delivery, "a", 30_000)]
        if by_clock:
            assert "record_lock" in [each.timer for each in (await coordinator.advance(30_000)).fired]
        else:
            await coordinator.expire_lock(GROUP, "jobs", 0, 0)
    assert await member.fetch(max_wait_ms=0) == []
    [letter] = await coordinator.records("dlq.jobs")
    headers = dict(letter.headers)
    assert (headers["__dlq.errors.offset"], headers["__dlq.errors.delivery.count"]) == (b"0", b"5")
    state = await coordinator.share_state(GROUP, "jobs", 0)
    assert state is not None
    assert (state.start_offset, state.records) == (1, [])
