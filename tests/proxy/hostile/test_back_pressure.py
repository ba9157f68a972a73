"""Clients and brokers that do not read, or that have closed their half: what waits is bounded, and is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.protocol.registry import OFFSET_COMMIT
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.relay import Relay
from rejoin.proxy.requests import MOST_PENDING
from rejoin.proxy.service import NothingWatched
from tests.proxy.test_relay import fetched
from tests.proxy.wire import ScriptedBroker, Stand, codec, proxied

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())
WAITS_AT_MOST = 1 << 20
"""Bytes of one direction that the proxy holds of a connection: a buffer of its own and one piece more."""


class WatchedCommits(NothingWatched):
    """Keeps the bodies of commits."""

    watched = frozenset({OFFSET_COMMIT.key})

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Nothing."""


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0)


def the_relay(stand: Stand) -> Relay:
    (relay,) = stand.proxy.relays
    return relay


async def test_ten_thousand_requests_without_reading_wait_in_front_of_the_proxy() -> None:
    broker = ScriptedBroker()
    most = 0
    async with proxied(broker) as stand:

        def answered(frame: bytes) -> bytes:
            nonlocal most
            most = max(most, len(the_relay(stand).pending))
            return codec(12, 4).response_frame(int.from_bytes(frame[4:8], "big"), HeartbeatResponse())

        broker.on_raw = answered
        client = await stand.client()
        for _ in range(10_000):
            client.send(HEARTBEAT)
        for _ in range(10_000):
            await client.receive()
        assert 0 < most <= MOST_PENDING
        assert await client.ask(HEARTBEAT) == HeartbeatResponse()


async def test_a_client_goes_on_after_as_many_requests_as_may_be_pending() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda _: b""
    async with proxied(broker) as stand:
        client = await stand.client()
        for _ in range(MOST_PENDING):
            client.send(HEARTBEAT)
        await broker.wait_for(MOST_PENDING)
        relay = the_relay(stand)
        assert relay.client.is_paused
        broker.on_raw = None
        broker.answers["Heartbeat"] = HeartbeatResponse()
        for number in range(1, MOST_PENDING + 1):
            broker.writers[0].write(codec(12, 4).response_frame(number, HeartbeatResponse()))
        for _ in range(MOST_PENDING):
            await client.receive()
        assert await client.ask(HEARTBEAT) == HeartbeatResponse()


async def test_kept_requests_that_a_broker_does_not_answer_are_bounded_by_their_bytes() -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m" * 30_000)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,) * 50)
    commit = OffsetCommitRequest(group_id="g", topics=(topic,))
    broker = ScriptedBroker({"OffsetCommit": OffsetCommitResponse()})
    async with proxied(broker, WatchedCommits()) as stand:
        broker.on_raw = lambda _: b""
        client = await stand.client()
        for _ in range(20):
            client.send(commit, 8)
        await until(lambda: bool(stand.proxy.relays) and the_relay(stand).kept_bytes >= 16 << 20)
        relay = the_relay(stand)
        await broker.wait_for(len(relay.pending))
        assert relay.client.is_paused
        assert relay.kept_bytes < 19 << 20
        broker.on_raw = None
        for number in range(1, len(relay.pending) + 1):
            broker.writers[0].write(codec(8, 8).response_frame(number, OffsetCommitResponse()))
        for _ in range(20):
            assert await client.receive() == OffsetCommitResponse()
        assert relay.kept_bytes == 0


async def test_a_slow_reader_with_fetches_in_flight_stops_the_broker() -> None:
    answer = codec(1, 12).response_frame(1, fetched(1_000_000))
    broker = ScriptedBroker()
    broker.on_raw = lambda frame: answer[:4] + frame[4:8] + answer[8:]
    async with proxied(broker) as stand:
        client = await stand.client()
        client.reader._limit = 1  # type: ignore[attr-defined]
        for _ in range(60):
            client.send(FETCH, 12)
        await until(lambda: bool(stand.proxy.relays) and the_relay(stand).broker.is_paused)
        transport = the_relay(stand).client.transport
        assert transport is not None
        assert transport.get_write_buffer_size() < WAITS_AT_MOST
        for number in range(1, 61):
            assert (await client.frame())[:4] == number.to_bytes(4, "big")


async def test_answers_of_a_rule_that_a_client_does_not_read_stop_its_requests() -> None:
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
    async with proxied(broker) as stand:
        stand.fault(keys="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", count=-1)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        topic = OffsetCommitRequestTopic(name="t" * 30_000, partitions=(partition,))
        commit = OffsetCommitRequest(group_id="g", topics=(topic,))
        client = await stand.client()
        client.reader._limit = 1  # type: ignore[attr-defined]
        for _ in range(600):
            client.send(commit, 8)
        await until(lambda: bool(stand.proxy.relays) and the_relay(stand).client.is_full)
        relay = the_relay(stand)
        assert relay.client.is_paused
        assert relay.client.transport is not None
        assert relay.client.transport.get_write_buffer_size() < WAITS_AT_MOST
        for _ in range(600):
            await client.receive()
        assert await client.ask(HEARTBEAT) == HeartbeatResponse()


async def test_what_came_before_a_client_closed_its_half_is_answered() -> None:
    # All of it may be here before the broker is.
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
    async with proxied(broker) as stand:
        client = await stand.client()
        for _ in range(3):
            client.send(HEARTBEAT)
        client.writer.write(b"\0\0\0\x20half a request")
        client.writer.write_eof()
        for _ in range(3):
            assert await client.receive() == HeartbeatResponse()
        assert await client.at_end() == b""
        await until(lambda: not stand.proxy.relays)


async def test_a_broker_that_closes_its_half_ends_the_connection_behind_its_answers() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda frame: codec(12, 4).response_frame(1, HeartbeatResponse()) + b"\0\0\0\x40torn"
    async with proxied(broker) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        client.send(HEARTBEAT)
        assert await client.receive() == HeartbeatResponse()
        broker.writers[0].write_eof()
        await client.at_end()
        await until(lambda: not stand.proxy.relays)
