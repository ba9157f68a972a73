"""Frames that pass through the proxy: order, large frames, connections that end, and addresses of the proxy's own."""

from __future__ import annotations

import asyncio
import gc

import uvloop

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.cluster.sasl import SaslHandshakeRequest, SaslHandshakeResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.records.fetch import (
    FetchablePartitionResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rejoin.proxy.frames import FrameSplitter
from rejoin.proxy.listeners.cluster_brokers import find_brokers
from rejoin.proxy.relay import Relay
from rejoin.proxy.side import Side
from tests.proxy.wire import ScriptedBroker, codec, proxied

ALL_TOPICS = MetadataRequest(topics=None)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())


def produce(records: bytes, acks: int) -> ProduceRequest:
    topic = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(topic,))


def fetched(size: int, *endpoints: NodeEndpoint) -> FetchResponse:
    partition = FetchablePartitionResponse(records=bytes(size))
    return FetchResponse(responses=(FetchableTopicResponse(partitions=(partition,)),), node_endpoints=endpoints)


async def test_clients_stay_on_the_proxy() -> None:
    coordinator = Coordinator(key="g", node_id=5, host="broker-5", port=9_092)
    broker = ScriptedBroker({"FindCoordinator": FindCoordinatorResponse(coordinators=(coordinator,))})
    async with proxied(broker) as stand:
        client = await stand.client()
        (listed,) = (await client.ask(ALL_TOPICS)).brokers
        (found,) = (await client.ask(FindCoordinatorRequest(coordinator_keys=("g",)))).coordinators
        assert (listed.node_id, listed.host) == (5, "127.0.0.1")
        assert (found.host, found.port) == (listed.host, listed.port)
        assert listed.port not in (broker.port, stand.proxy.port)


async def test_brokers_have_listeners_before_a_client_asks() -> None:
    async with proxied(ScriptedBroker()) as stand:
        assert await find_brokers(stand.proxy)
        assert list(stand.proxy.brokers.by_id) == [5]


async def test_the_port_of_a_broker_reaches_that_broker() -> None:
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)})
    async with proxied(broker) as stand:
        client = await stand.client()
        (listed,) = (await client.ask(ALL_TOPICS)).brokers
        other = await stand.client(listed.port)
        assert (await other.ask(HEARTBEAT)).error_code is ErrorCode.ILLEGAL_GENERATION
        assert stand.proxy.counters.requests == {"Metadata": 1, "Heartbeat": 1}


async def test_answers_come_in_the_order_of_their_requests() -> None:
    broker = ScriptedBroker(
        {"Heartbeat": HeartbeatResponse(), "Produce": lambda asked: ProduceResponse() if asked.acks else None}
    )
    async with proxied(broker) as stand:
        client = await stand.client()
        for _ in range(50):
            client.send(HEARTBEAT)
            client.send(produce(b"r" * 300, 0), answered=False)
            client.send(produce(b"r" * 300, 1))
            client.send(ALL_TOPICS)
        answers = [type(await client.receive()).__name__ for _ in range(150)]
    assert answers == ["HeartbeatResponse", "ProduceResponse", "MetadataResponse"] * 50


async def test_a_large_request_passes_while_it_arrives() -> None:
    async with proxied(ScriptedBroker({"Produce": ProduceResponse()})) as stand:
        client = await stand.client()
        form = codec(0, 9)
        frame = form.request_frame(1, "c", produce(b"r" * 3_000_000, 1))
        client.writer.write(frame[:200_000])
        client.writer.write(frame[200_000:])
        assert form.read_response_frame(await client.frame())[1] == ProduceResponse()
        assert stand.broker.raw[0] == frame[4:]


async def test_a_large_fetch_passes_while_it_arrives_with_endpoints_of_the_proxy() -> None:
    gate = asyncio.Event()
    whole = fetched(3_000_000, NodeEndpoint(node_id=5, host="broker-5.of.the.cluster", port=9_092))
    frame = codec(1, 16).response_frame(1, whole)
    broker = ScriptedBroker()
    broker.on_raw = lambda _: frame[:1_000_000]
    async with proxied(broker) as stand:
        client = await stand.client()
        client.send(FETCH, 16)
        size = int.from_bytes(await client.reader.readexactly(4), "big")
        begun = await client.reader.readexactly(900_000)
        assert not gate.is_set()
        broker.writers[0].write(frame[1_000_000:])
        body = begun + await client.reader.readexactly(size - len(begun))
        _, answer = codec(1, 16).read_response_frame(body)
        assert isinstance(answer, FetchResponse)
        (endpoint,) = answer.node_endpoints
        assert (endpoint.host, endpoint.port) == stand.proxy.brokers.local(5, "broker-5.of.the.cluster", 9_092)
        assert answer.responses == whole.responses


async def test_what_is_not_known_passes_and_is_counted() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda frame: b"\0\0\0\x0b" + frame[4:8] + b"strange"
    async with proxied(broker) as stand:
        client = await stand.client()
        client.writer.write(b"\0\0\0\x0e" + b"\x03\xe7\x00\x05" + b"\0\0\0\x2a" + b"\x00\x01c" + b"abc")
        assert await client.frame() == b"\0\0\0\x2astrange"
        assert stand.proxy.counters.unknown == {(999, 5): 1}
        totals = stand.proxy.counters.totals()
        assert (totals["requests"], totals["unknown"], totals["connections"]) == (1, {"999:5": 1}, 1)


async def test_a_frame_that_lies_ends_its_connection_only() -> None:
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
    async with proxied(broker) as stand:
        good, bad = await stand.client(), await stand.client()
        assert (await good.ask(HEARTBEAT)).error_code is ErrorCode.NONE
        bad.writer.write(b"\xff\xff\xff\xff")
        assert await bad.at_end() == b""
        assert (await good.ask(HEARTBEAT)).error_code is ErrorCode.NONE
        assert stand.proxy.counters.refused == 1


async def test_an_answer_to_another_request_ends_the_connection() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda _: codec(12, 4).response_frame(99, HeartbeatResponse())
    async with proxied(broker) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        assert await client.at_end() == b""


async def test_the_next_bootstrap_server_is_tried() -> None:
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
    nothing_there = await asyncio.start_server(broker.accept, "127.0.0.1", 0)
    port = nothing_there.sockets[0].getsockname()[1]
    nothing_there.close()
    await nothing_there.wait_closed()
    async with proxied(broker) as stand:
        stand.proxy.brokers.first.upstream.insert(0, ("127.0.0.1", port))
        lost = await stand.client()
        assert await lost.at_end() == b""
        assert stand.proxy.counters.unreachable == 1
        assert (await (await stand.client()).ask(HEARTBEAT)).error_code is ErrorCode.NONE


async def test_what_was_asked_is_answered_before_the_end() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda _: b""
    async with proxied(broker) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        await broker.wait_for(1)
        stopping = asyncio.create_task(stand.proxy.stop(drain=True))
        await asyncio.sleep(0)
        broker.writers[0].write(codec(12, 4).response_frame(1, HeartbeatResponse()))
        assert await client.receive() == HeartbeatResponse()
        assert await client.at_end() == b""
        await stopping


async def test_a_client_may_close_its_half_and_read_on() -> None:
    broker = ScriptedBroker()
    broker.on_raw = lambda _: b""
    async with proxied(broker) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        client.writer.write_eof()
        await broker.wait_for(1)
        broker.writers[0].write(codec(12, 4).response_frame(1, HeartbeatResponse()))
        assert await client.receive() == HeartbeatResponse()
        assert await client.at_end() == b""


async def test_bare_tokens_of_a_login_pass() -> None:
    broker = ScriptedBroker({"SaslHandshake": SaslHandshakeResponse(), "Heartbeat": HeartbeatResponse()})
    broker.on_raw = lambda frame: b"\0\0\0\0" if frame == b"\0user\0secret" else None
    async with proxied(broker) as stand:
        client = await stand.client()
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        client.writer.write(b"\0\0\0\x0c\0user\0secret")
        assert await client.frame() == b""
        assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.NONE


def test_ended_connections_are_freed_without_the_collector_of_cycles() -> None:
    """A proxy under load has that collector run late; on uvloop, as ``rejoin proxy`` runs."""

    def alive() -> int:
        return sum(isinstance(each, Relay | Side | FrameSplitter) for each in gc.get_objects())

    async def left() -> int:
        async with proxied(ScriptedBroker({"Heartbeat": HeartbeatResponse()})) as stand:
            gc.collect()
            gc.disable()
            try:
                before = alive()
                for _ in range(3):
                    client = await stand.client()
                    await client.ask(HEARTBEAT)
                    client.writer.close()
                    async with asyncio.timeout(20):
                        while alive() > before:  # noqa: ASYNC110 (nothing says when Python frees)
                            await asyncio.sleep(0)
                return alive() - before
            finally:
                gc.enable()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(left()) == 0


def test_requests_that_come_before_the_broker_is_there_wait() -> None:
    # uvloop reads on where asyncio's loop has paused already.
    async def ask() -> None:
        async with proxied(ScriptedBroker({"Heartbeat": HeartbeatResponse()})) as stand:
            client = await stand.client()
            assert (await client.ask(HEARTBEAT)).error_code is ErrorCode.NONE

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask())
