"""A client that sends many requests at once: others are served meanwhile, and what it does not read is not made."""

from __future__ import annotations

import asyncio
import struct

from rejoin.coordinator.service.options import InitialTopic
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.registry import FETCH, PRODUCE
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import Peer, api_versions, request

METADATA = 3


def metadata(correlation: int) -> bytes:
    """Metadata 1 of all topics."""
    return request(METADATA, 1, correlation, struct.pack(">i", -1))


def answered(node: Harness, api: str) -> int:
    return sum(node.app.metrics.api(api).answers.values())


async def test_requests_of_one_chunk_leave_others_their_turn(serve: Serve) -> None:
    node = await serve({"kafka_port": 0, "topics": (InitialTopic("wide", 1_000, None),)})
    port = node.app.endpoints[0].port
    async with Peer(port) as many, Peer(port) as other:
        await other.ask(api_versions(0))
        many.send(*map(metadata, range(200)))
        await other.ask(api_versions(0))
        assert 0 < answered(node, "Metadata") < 100
        assert [(await many.receive())[0] for _ in range(200)] == list(range(200))


async def test_what_arrives_between_turns_is_served_in_order(serve: Serve) -> None:
    node = await serve({"kafka_port": 0, "topics": (InitialTopic("wide", 1_000, None),)})
    async with Peer(node.app.endpoints[0].port) as peer:
        for first in range(0, 200, 20):
            peer.send(*map(metadata, range(first, first + 20)))
            await asyncio.sleep(0)
        assert [(await peer.receive())[0] for _ in range(200)] == list(range(200))


async def test_a_client_that_does_not_read_is_not_served_on(serve: Serve) -> None:
    node = await serve({"kafka_port": 0, "topics": (InitialTopic("orders", 1, None),)})
    record = write_records([DefaultRecord(0, 0, None, bytes(900_000))])
    batch = sealed(BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1), record)
    data = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=batch),))
    produce, fetch = codec_of(PRODUCE.key, 9), codec_of(FETCH.key, 11)
    assert produce is not None
    assert fetch is not None
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    topics = (FetchTopic(topic="orders", partitions=(partition,)),)
    wanted = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=2**20, topics=topics)
    port = node.app.endpoints[0].port
    async with Peer(port) as peer, Peer(port) as other:
        peer.send_bytes(produce.request_frame(1, "test", ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,))))
        await peer.receive()
        peer.send_bytes(b"".join(fetch.request_frame(number, "test", wanted) for number in range(200)))
        for _ in range(300):
            await other.ask(api_versions(0))
        # As many as the sockets hold; 180 MB were asked for.
        assert 0 < answered(node, "Fetch") < 100
        assert [(await peer.receive())[0] for _ in range(200)] == list(range(200))
