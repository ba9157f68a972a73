"""Faults: which requests a rule applies to, what becomes of them, and how a test learns of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest

from rejoin.coordinator.testing import FaultHandle, GroupCoordinator, NoAnswer, NotReached, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.registry import APIS
from rejoin.transcript.player import play
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.control.samples import GROUP, beat, joined, parse, sample, stable
from tests.coordinator.service.helpers import join
from tests.suite.cases import for_each


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as started:
        yield started


@pytest.mark.parametrize("field", [{"seed": 10**20}, {"version": 10**20}, {"node": [1, -(10**20)]}])
async def test_numbers_beyond_64_bits_are_refused(node: ControlledNode, field: dict[str, Any]) -> None:
    status, detail = await node.refused("POST", "/faults", **field)
    assert (status, "expected a number from -9223372036854775807 to" in detail) == (400, True)
    assert (await node.control("GET", "/faults"))["faults"] == []


async def error_of_beat(coordinator: GroupCoordinator, member_id: str, client_id: str = "app") -> ErrorCode:
    return cast(HeartbeatResponse, await coordinator.call(beat(member_id), None, client_id)).error_code


async def test_a_rule_for_a_topic_also_matches_its_id(coordinator: GroupCoordinator) -> None:
    metadata = MetadataRequest(topics=None, include_topic_authorized_operations=False)
    described: Any = await coordinator.call(metadata, 12)
    partition = FetchPartition(partition=2, fetch_offset=0, partition_max_bytes=100)
    topic = FetchTopic(topic_id=described.topics[0].topic_id, partitions=(partition,))
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,), forgotten_topics_data=())
    await coordinator.add_fault(topic="orders", partitions=2, error="NOT_LEADER_OR_FOLLOWER")
    answer: Any = await coordinator.call(fetch, 13)
    assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- what becomes of a request


async def test_before_fails_a_request_without_applying_it(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    fault = await coordinator.add_fault(keys="LeaveGroup", error="NOT_COORDINATOR")
    answer: Any = await coordinator.call(sample("LeaveGroup", member_id))
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert fault.hits == 1
    assert await error_of_beat(coordinator, member_id) is ErrorCode.NONE, "it has not left"


async def test_after_applies_a_request_and_fails_it_then(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="LeaveGroup", when="after", error="COORDINATOR_NOT_AVAILABLE")
    answer: Any = await coordinator.call(sample("LeaveGroup", member_id))
    assert answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await error_of_beat(coordinator, member_id) is ErrorCode.UNKNOWN_MEMBER_ID, "it has left all the same"


async def test_drop_request_loses_a_request_on_its_way(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="LeaveGroup", when="drop_request")
    with pytest.raises(NoAnswer):
        await coordinator.call(sample("LeaveGroup", member_id))
    assert await error_of_beat(coordinator, member_id) is ErrorCode.NONE


async def test_drop_response_loses_the_answer(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="LeaveGroup", when="drop_response")
    with pytest.raises(NoAnswer):
        await coordinator.call(sample("LeaveGroup", member_id))
    assert await error_of_beat(coordinator, member_id) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_delay_applies_a_request_later_on_the_nodes_clock(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="LeaveGroup", latency_ms=250)
    leaving = asyncio.ensure_future(coordinator.call(sample("LeaveGroup", member_id)))
    await asyncio.sleep(0)
    assert (await coordinator.advance(249)).fired == []
    assert not leaving.done()
    advanced = await coordinator.advance(1)
    assert [(fired.timer, fired.after_ms) for fired in advanced.fired] == [("latency", 1)]
    await leaving
    assert await error_of_beat(coordinator, member_id) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_what_a_latency_held_is_applied_at_its_instant_on_a_long_way(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="Heartbeat", latency_ms=40_000)
    late = asyncio.ensure_future(coordinator.call(beat(member_id)))
    await asyncio.sleep(0)
    advanced = await coordinator.advance(84_999)
    assert [fired.timer for fired in advanced.fired] == ["latency"], "the heartbeat came in time, at 40 s"
    assert cast(HeartbeatResponse, await late).error_code is ErrorCode.NONE
    assert [fired.timer for fired in (await coordinator.advance(1)).fired] == ["session"]


async def test_a_barrier_holds_requests_until_it_is_released(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    barrier = await coordinator.add_fault(keys="Heartbeat", pause=True, count=-1)
    beats = [asyncio.ensure_future(coordinator.call(beat(member_id))) for _ in range(3)]
    await barrier.wait(hits=3)
    assert not any(each.done() for each in beats)
    assert barrier.held == 3
    assert await barrier.release() == 3
    await asyncio.gather(*beats)
    assert await error_of_beat(coordinator, member_id) is ErrorCode.NONE, "an open barrier holds no request"
    assert barrier.hits == 4


async def test_a_barrier_behind_the_answer_holds_what_is_applied_already(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    barrier = await coordinator.add_fault(keys="LeaveGroup", when="after", pause=True)
    leaving = asyncio.ensure_future(coordinator.call(sample("LeaveGroup", member_id)))
    await barrier.wait()
    await coordinator.wait_for_group(GROUP, state="Empty")
    assert not leaving.done()
    await barrier.release()
    answer: Any = await leaving
    assert answer.members[0].error_code is ErrorCode.NONE


async def test_removing_a_rule_lets_go_of_what_it_holds(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    barrier = await coordinator.add_fault(keys="Heartbeat", pause=True)
    held = asyncio.ensure_future(coordinator.call(beat(member_id)))
    await barrier.wait()
    await barrier.remove()
    assert cast(HeartbeatResponse, await held).error_code is ErrorCode.NONE


async def test_a_lost_answer_over_http_is_a_lost_connection(node: ControlledNode) -> None:
    member_id = await node.stable()
    for when in ("drop_request", "drop_response"):
        fault = await node.control("POST", "/faults", keys="Heartbeat", when=when)
        with pytest.raises(aiohttp.ClientError):
            await node.beat(member_id)
        assert (await node.control("GET", f"/faults/{fault['id']}"))["hits"] == 1
        assert await node.beat(member_id) == 0


async def test_an_error_over_http_is_one_of_kafkas_answers(node: ControlledNode) -> None:
    member_id = await node.stable()
    await node.control("POST", "/faults", keys=[12], error=27)
    body = {"groupId": "g", "generationId": 1, "memberId": member_id}
    answered = await node.request("POST", "/v1/heartbeat", body)
    assert (answered.status, answered.headers["Kafka-Error"]) == (200, "REBALANCE_IN_PROGRESS")


async def test_a_requester_who_goes_away_is_not_held(node: ControlledNode) -> None:
    member_id = await node.stable()
    fault = await node.control("POST", "/faults", keys="Heartbeat", pause=True, count=-1)
    beating = asyncio.ensure_future(node.beat(member_id))
    await node.control("POST", f"/faults/{fault['id']}/wait", hits=1)
    beating.cancel()
    async with asyncio.timeout(60):
        while (await node.control("GET", f"/faults/{fault['id']}"))["held"]:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


# --- which requests


@pytest.mark.parametrize(
    ("fields", "applied"),
    [
        ({}, True),
        ({"keys": "Heartbeat"}, True),
        ({"keys": "HEARTBEAT"}, True),
        ({"keys": 12}, True),
        ({"keys": ["ListOffsets", "Heartbeat"], "topic": "orders"}, False),
        ({"keys": ["ListOffsets", "Heartbeat"], "version": [4, 11]}, True),
        ({"keys": ["JoinGroup", 12]}, True),
        ({"keys": "JoinGroup"}, False),
        ({"group": GROUP}, True),
        ({"group": ["x", GROUP]}, True),
        ({"group": "x"}, False),
        ({"member": "MEMBER"}, True),
        ({"member": "x"}, False),
        ({"instance": "x"}, False),
        ({"client_id": "app"}, True),
        ({"client_id": "x"}, False),
        ({"node": 1}, True),
        ({"version": 4}, True),
        ({"version": [0, 1, 2]}, False),
        ({"topic": "orders"}, False),
        ({"partitions": 0}, False),
        ({"keys": 12, "group": GROUP, "client_id": "app", "version": 4}, True),
        ({"keys": 12, "group": GROUP, "client_id": "x", "version": 4}, False),
    ],
)
async def test_fields_are_anded_and_absent_ones_mean_any(
    coordinator: GroupCoordinator, fields: dict[str, Any], applied: bool
) -> None:
    member_id = await stable(coordinator)
    given: dict[str, Any] = {name: member_id if value == "MEMBER" else value for name, value in fields.items()}
    fault = await coordinator.add_fault(error="NOT_COORDINATOR", **given)
    error = await error_of_beat(coordinator, member_id)
    assert (error is ErrorCode.NOT_COORDINATOR, fault.hits) == (applied, int(applied))


@pytest.mark.parametrize(
    ("api", "fields", "applied"),
    [
        ("OffsetCommit", {"topic": "orders"}, True),
        ("OffsetCommit", {"topic": "orders", "partitions": [0, 7]}, True),
        ("OffsetCommit", {"topic": "orders", "partitions": 1}, False),
        ("OffsetCommit", {"topic": "clicks", "partitions": 0}, False),
        ("OffsetFetch", {"group": GROUP, "topic": "orders", "partitions": 0}, True),
        ("OffsetDelete", {"topic": "orders", "partitions": 0}, True),
        ("ListOffsets", {"topic": "orders", "partitions": 0}, True),
        ("TxnOffsetCommit", {"group": GROUP}, True),
        ("WriteTxnMarkers", {"topic": "__consumer_offsets", "partitions": 3}, True),
        ("Metadata", {"topic": "orders"}, True),
        ("CreateTopics", {"topic": "more"}, True),
        ("DeleteTopics", {"topic": "orders"}, True),
        ("CreatePartitions", {"topic": "orders"}, True),
        ("JoinGroup", {"topic": "orders"}, True),
        ("JoinGroup", {"topic": "clicks"}, False),
        ("FindCoordinator", {"group": GROUP}, True),
        ("DescribeGroups", {"group": GROUP}, True),
        ("DeleteGroups", {"group": GROUP}, True),
        ("LeaveGroup", {"member": "MEMBER"}, True),
        ("LeaveGroup", {"member": "x"}, False),
        ("ListGroups", {"group": GROUP}, False),
    ],
)
async def test_what_a_request_is_about_is_read_in_every_api(
    coordinator: GroupCoordinator, api: str, fields: dict[str, Any], applied: bool
) -> None:
    member_id = await stable(coordinator)
    given: dict[str, Any] = {name: member_id if value == "MEMBER" else value for name, value in fields.items()}
    fault = await coordinator.add_fault(error="NOT_COORDINATOR", **given)
    await coordinator.call(sample(api, member_id))
    assert fault.hits == int(applied)


@pytest.mark.parametrize(("count", "hits"), [(0, 1), (1, 1), (3, 3), (-1, 5)])
async def test_count_says_how_many_requests(coordinator: GroupCoordinator, count: int, hits: int) -> None:
    member_id = await stable(coordinator)
    fault = await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR", count=count)
    errors = [await error_of_beat(coordinator, member_id) for _ in range(5)]
    assert errors == [ErrorCode.NOT_COORDINATOR] * hits + [ErrorCode.NONE] * (5 - hits)
    assert fault.hits == hits


async def test_the_first_rule_that_matches_answers(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    narrow = await coordinator.add_fault(keys="Heartbeat", client_id="other", error="NOT_COORDINATOR", count=-1)
    first = await coordinator.add_fault(keys="Heartbeat", error="REBALANCE_IN_PROGRESS", count=2)
    second = await coordinator.add_fault(keys="Heartbeat", error="ILLEGAL_GENERATION", count=-1)
    errors = [(await error_of_beat(coordinator, member_id)).name for _ in range(3)]
    assert errors == ["REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"]
    assert (narrow.hits, first.hits, second.hits) == (0, 2, 1)
    assert await error_of_beat(coordinator, member_id, "other") is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("latency", "expected"),
    [
        ({"values": [10, 30]}, [10, 30, 10]),
        ({"uniform": [20, 20]}, [20, 20, 20]),
        ({"normal": [15, 0]}, [15, 15, 15]),
        ({"exponential": 0}, [0, 0, 0]),
        (12.4, [12, 12, 12]),
    ],
)
async def test_latencies_can_be_drawn(coordinator: GroupCoordinator, latency: Any, expected: list[int]) -> None:
    member_id = await stable(coordinator)
    await coordinator.add_fault(keys="Heartbeat", when="delay", latency_ms=latency, count=-1)
    for millis in expected:
        held = asyncio.ensure_future(coordinator.call(beat(member_id)))
        await asyncio.sleep(0)
        before = coordinator.now_ms
        if millis:
            await coordinator.advance_to_next()
        await held
        assert coordinator.now_ms - before == millis


async def test_the_same_seed_draws_the_same_latencies(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator, sessionTimeoutMs=1_800_000)
    drawn: list[list[int]] = []
    for _ in range(2):
        fault = await coordinator.add_fault(keys="Heartbeat", latency_ms={"exponential": 100}, seed=4, count=-1)
        taken = []
        for _ in range(5):
            held = asyncio.ensure_future(coordinator.call(beat(member_id)))
            await asyncio.sleep(0)
            taken.append((await coordinator.advance_to_next()).advanced_ms)
            await held
        drawn.append(taken)
        await fault.remove()
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 1


# --- learning of it


async def test_waiting_for_hits_that_do_not_come_says_how_many_there_were(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR", count=-1)
    await coordinator.call(beat("x"))
    await fault.wait(1)
    with pytest.raises(NotReached, match="applied 1 times within 10 ms, expected 2"):
        await fault.wait(2, timeout_ms=10)


async def test_rules_can_be_looked_at_and_removed_over_http(node: ControlledNode) -> None:
    first = await node.control("POST", "/faults", keys="Heartbeat", error=16, group="x")
    assert first["rule"] == {
        "keys": ["Heartbeat"],
        "group": ["x"],
        "error": "NOT_COORDINATOR",
        "when": "before",
    }
    await node.control("POST", "/faults", keys="JoinGroup", when="drop_request", count=-1)
    assert [each["id"] for each in (await node.control("GET", "/faults"))["faults"]] == ["1", "2"]
    assert (await node.control("DELETE", "/faults/1"))["id"] == "1"
    assert await node.refused("GET", "/faults/1") == (404, "there is no fault '1'; there are: 2")
    assert len((await node.control("DELETE", "/faults"))["removed"]) == 1
    assert (await node.control("GET", "/faults"))["faults"] == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"keyz": 1}, "there is no field keyz; is it keys?"),
        ({"keys": "Hartbeat", "error": 16}, "there is no API 'Hartbeat'; is it Heartbeat?"),
        ({"keys": 9_999, "error": 16}, "there is no API number 9999"),
        ({"keys": True, "error": 16}, "expected the name or number of an API"),
        ({"error": "NOT_A_THING"}, "there is no error 'NOT_A_THING'"),
        ({"error": "NOPE"}, "there is no error 'NOPE'"),
        ({"error": "not_coordinater"}, "there is no error 'not_coordinater'; is it NOT_COORDINATOR?"),
        ({"error": 12_345}, "there is no error 12345"),
        ({"error": 0}, "error: NONE is no error"),
        ({"count": -2, "error": 16}, "count"),
        ({"when": "sometime"}, "when: expected 'before', 'after'"),
        ({"when": "before"}, "needs an error"),
        ({"when": "after"}, "needs an error"),
        ({"when": "delay"}, "needs latency_ms or pause"),
        (
            {},
            "a rule needs something to do: error, wrong, latency_ms, pause, cut_after_bytes, bytes_per_second, "
            "throttle_ms, or when",
        ),
        ({"keys": "Metadata"}, "a rule needs something to do"),
        ({"keys": "Metadata", "reset": True}, "reset needs cut_after_bytes; 0 resets the connection before the answer"),
        ({"when": "drop_request", "error": 16}, "answers with no error"),
        ({"latency_ms": -1}, "faults: latency_ms: expected greater than"),
        ({"latency_ms": {"values": [1, "x"]}}, "faults: latency_ms.values.1: expected a valid number"),
        ({"latency_ms": {"uniform": [1, 2], "values": [1]}}, "exactly one of"),
        ({"latency_ms": {"uniform": [5, 1]}}, "uniform: expected the least latency before the most, not [5.0, 1.0]"),
        ({"latency_ms": {"poisson": 1}}, "latency_ms: there is no field poisson; expected one of uniform, normal,"),
        ({"group": 7, "error": 16}, "faults: group: expected a valid string"),
        ({"latency_ms": {"uniform": [500]}}, "latency_ms.uniform: expected two numbers, as [50, 500], not [500]"),
        ({"latency_ms": {"normal": 500}}, "latency_ms.normal: expected two numbers, as [50, 500], not 500"),
        ({"latency_ms": {"values": []}}, "latency_ms.values: expected at least 1 item, not []"),
        ({"latency_ms": float("nan")}, "latency_ms: expected less than or equal to 86400000, not NaN"),
        ({"pause": None}, "pause: expected a valid boolean, not null"),
        ({"partitions": "0", "error": 16}, "faults: partitions: expected an integer"),
        ({"partitions": [0, "0"], "error": 16}, "faults: partitions.1: expected an integer"),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused_in_full(
    node: ControlledNode, body: dict[str, Any], words: str
) -> None:
    status, detail = await node.refused("POST", "/faults", **body)
    assert status == 400
    assert words in detail
    assert (await node.control("GET", "/faults"))["faults"] == []


# --- every fault on every request

FAULTS: dict[str, dict[str, Any]] = {
    "before": {"when": "before", "error": "COORDINATOR_NOT_AVAILABLE"},
    "before-late": {"when": "before", "error": "NOT_COORDINATOR", "latency_ms": 10},
    "after": {"when": "after", "error": "UNKNOWN_SERVER_ERROR"},
    "after-late": {"when": "after", "latency_ms": 10},
    "drop_request": {"when": "drop_request"},
    "drop_response": {"when": "drop_response"},
    "delay": {"when": "delay", "latency_ms": 10},
    "pause": {"pause": True},
    "pause-after": {"when": "after", "error": "NOT_COORDINATOR", "pause": True},
}


@pytest.mark.parametrize("name", FAULTS)
@for_each("api", [api.name for api in APIS])
async def test_every_fault_on_every_request(name: str, api: str) -> None:
    """No request hangs, the rule counts right, the group stays sound, and what happened can be played."""
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as coordinator:
        await assert_requests_end(coordinator, name, api)


async def assert_requests_end(coordinator: GroupCoordinator, name: str, api: str) -> None:
    member_id = await stable(coordinator)
    other = await joined(coordinator, client_id="other")
    fault = await coordinator.add_fault(keys=api, count=2, **FAULTS[name])
    asked = [asyncio.ensure_future(coordinator.call(sample(api, member_id), None, "app")) for _ in range(3)]
    for expected in (2, 2):
        await fault.wait(expected, timeout_ms=60_000)
    await asyncio.sleep(0)
    if fault.held:
        await coordinator.advance(10)
    await fault.release()
    await coordinator.advance_until_idle()
    done, pending = await asyncio.wait([*asked, other], timeout=60)
    assert not pending, f"{len(pending)} requests hang"
    assert {type(task.exception()) for task in done} <= {type(None), NoAnswer}
    lost = sum(isinstance(task.exception(), NoAnswer) for task in done)
    assert lost == (2 if name.startswith("drop") else 0)
    assert (fault.hits, fault.held) == (2, 0)
    await assert_sound(coordinator)


NOT_PLAYED = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "AlterShareGroupOffsets", "WriteTxnMarkers")
"""Requests that leave events behind and for which transcripts have no words."""


async def assert_sound(coordinator: GroupCoordinator) -> None:
    """What must hold once no client asks any more."""
    group = await coordinator.group(GROUP)
    if group is not None:
        assert group.state == "Empty"
        assert (group.members, group.pending_members, group.pending_sync) == ([], [], [])
        assert group.deadlines == {}
    node = coordinator.app.runtime.node
    assert node.waiting() == []
    assert node.describe().parked_joins == 0
    assert coordinator.app.runtime.core_failures == 0
    transcript = await coordinator.transcript(claim="A fault is applied.")
    if not any(f"# not expressible: {api}" in transcript for api in NOT_PLAYED):
        assert play(transcript).text == transcript


async def test_a_held_request_does_not_outlive_its_coordinator() -> None:
    async with running(clock="virtual", socket=False) as started:
        fault: FaultHandle = await started.add_fault(pause=True)
        late = asyncio.ensure_future(started.call(parse("JoinGroup", join(GROUP))))
        await fault.wait()
    with pytest.raises(NoAnswer):
        await late
