"""Rules of the control API in front of a cluster: each is seen by the client as the rule says."""

from __future__ import annotations

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.proxy.wire import ScriptedBroker, proxied

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
OTHER = HeartbeatRequest(group_id="h", generation_id=1, member_id="m")


def broker() -> ScriptedBroker:
    return ScriptedBroker({"Heartbeat": HeartbeatResponse()})


async def test_an_error_in_the_brokers_place() -> None:
    async with proxied(broker()) as stand:
        fault = stand.fault(keys="Heartbeat", group="g", error="REBALANCE_IN_PROGRESS", count=2)
        client = await stand.client()
        for each in (HEARTBEAT, OTHER, HEARTBEAT, HEARTBEAT):
            client.send(each)
        errors = [(await client.receive()).error_code.name for _ in range(4)]
        assert errors == ["REBALANCE_IN_PROGRESS", "NONE", "REBALANCE_IN_PROGRESS", "NONE"]
        assert [seen.request.group_id for seen in stand.broker.seen] == ["h", "g"]
        assert fault.hits == 2


async def test_an_error_after_the_request_was_applied() -> None:
    async with proxied(broker()) as stand:
        stand.fault(keys="Heartbeat", error="NOT_COORDINATOR", when="after")
        client = await stand.client()
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.NOT_COORDINATOR
        assert len(stand.broker.seen) == 1


async def test_a_request_and_an_answer_are_lost() -> None:
    async with proxied(broker()) as stand:
        stand.fault(keys="Heartbeat", when="drop_request")
        stand.fault(keys="Heartbeat", when="drop_response")
        for applied in (0, 1):
            client = await stand.client()
            client.send(HEARTBEAT)
            assert await client.at_end() == b""
            assert len(stand.broker.seen) == applied
        assert (await (await stand.client()).ask(HEARTBEAT)).error_code is ErrorCode.NONE


async def test_a_request_is_held_until_the_rule_is_released() -> None:
    async with proxied(broker()) as stand:
        fault = stand.fault(keys="Heartbeat", pause=True)
        client, free = await stand.client(), await stand.client()
        client.send(HEARTBEAT)
        assert await fault.wait(1, 10_000)
        client.send(OTHER)
        assert (await free.ask(OTHER)).error_code is ErrorCode.NONE
        assert [seen.request.group_id for seen in stand.broker.seen] == ["h"]
        fault.release()
        await client.receive()
        await client.receive()
        assert [seen.request.group_id for seen in stand.broker.seen] == ["h", "g", "h"]


async def test_an_answer_is_held_and_what_follows_waits() -> None:
    async with proxied(broker()) as stand:
        fault = stand.fault(keys="Heartbeat", group="g", pause=True, when="after")
        client = await stand.client()
        client.send(HEARTBEAT)
        client.send(OTHER)
        await stand.broker.wait_for(2)
        assert fault.hits == 1
        fault.release()
        assert [(await client.receive()).error_code.name for _ in range(2)] == ["NONE", "NONE"]


async def test_an_answer_is_cut_and_the_connection_ends() -> None:
    async with proxied(broker()) as stand:
        stand.fault(keys="Heartbeat", cut_after_bytes=6)
        client = await stand.client()
        client.send(HEARTBEAT)
        assert len(await client.at_end()) == 6


async def test_a_throttle_is_pretended() -> None:
    async with proxied(broker()) as stand:
        stand.fault(keys="Heartbeat", throttle_ms=1_234)
        client = await stand.client()
        assert (await client.ask(HEARTBEAT)).throttle_time_ms == 1_234
        assert (await client.ask(HEARTBEAT)).throttle_time_ms == 0


async def test_one_client_is_refused_and_others_are_not() -> None:
    async with proxied(broker()) as stand:
        stand.fault(client_id="a", error="GROUP_AUTHORIZATION_FAILED", count=-1)
        client = await stand.client()
        asked = [(await client.ask(HEARTBEAT, client_id=each)).error_code.name for each in "aba"]
        assert asked == ["GROUP_AUTHORIZATION_FAILED", "NONE", "GROUP_AUTHORIZATION_FAILED"]


def commit(*partitions: int) -> OffsetCommitRequest:
    asked = tuple(
        OffsetCommitRequestPartition(partition_index=each, committed_offset=7, committed_metadata="")
        for each in partitions
    )
    return OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=asked),))


def committed(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return request.response({}, ErrorCode.NONE)


async def test_some_entries_fail_and_the_broker_gets_the_others() -> None:
    async with proxied(ScriptedBroker({"OffsetCommit": committed})) as stand:
        stand.fault(keys="OffsetCommit", topic="t", partitions=1, error="UNKNOWN_TOPIC_OR_PARTITION")
        client = await stand.client()
        (topic,) = (await client.ask(commit(0, 1, 2), 8)).topics
        errors = {each.partition_index: each.error_code.name for each in topic.partitions}
        assert errors == {0: "NONE", 1: "UNKNOWN_TOPIC_OR_PARTITION", 2: "NONE"}
        (asked,) = stand.broker.seen[0].request.topics
        assert [each.partition_index for each in asked.partitions] == [0, 2]
