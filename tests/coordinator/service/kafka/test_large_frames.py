"""Frames of many pieces: what is served of them, in which order, and that a part of one is nothing."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from typing import Any

import pytest

from rejoin.coordinator.core.partitions.produce.validation import _locate
from rejoin.coordinator.service.kafka.large_frame import LargeFrame
from rejoin.coordinator.service.options import InitialTopic
from rejoin.protocol.message import Request
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.registry import FETCH, PRODUCE, Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.record_batch import BatchHeader, parse_header, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import Peer, api_versions, framed, join_group

TOPIC = "orders"
VERSIONS = (3, 8, 9, 12)
"""Produce without compact lengths and with them."""


@pytest.fixture
async def kafka(serve: Serve) -> Harness:
    """A node with a topic of two partitions."""
    return await serve({"kafka_port": 0, "topics": (InitialTopic(TOPIC, 2, None),)})


def connect(node: Harness) -> Peer:
    return Peer(node.app.endpoints[0].port)


def batch(*values: bytes) -> bytes:
    records = write_records(DefaultRecord(index, 0, None, value) for index, value in enumerate(values))
    return sealed(BatchHeader(0, 0, -1, 2, 0, 0, len(values) - 1, 0, 0, -1, -1, -1, len(values)), records)


def frame(api: Api, version: int, correlation: int, request: Request) -> bytes:
    codec = codec_of(api.key, version)
    assert codec is not None
    return codec.request_frame(correlation, "test", request)


def produce(correlation: int, *batches: tuple[int, bytes], version: int = 9) -> bytes:
    """A Produce of batches, each for a partition."""
    data = tuple(PartitionProduceData(index=index, records=records) for index, records in batches)
    topic = TopicProduceData(name=TOPIC, partition_data=data)
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,))
    return frame(PRODUCE, version, correlation, request)


def response(api: Api, version: int, body: bytes) -> Any:
    """A response, of which this is what follows its correlation id."""
    codec = codec_of(api.key, version)
    assert codec is not None
    return codec.read_response_frame(bytes(4) + body)[1]


async def log_of(peer: Peer, partition: int = 0) -> bytes:
    """All that a partition has."""
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=2**26)
    topics = (FetchTopic(topic=TOPIC, partitions=(wanted,)),)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=2**26, topics=topics)
    peer.send_bytes(frame(FETCH, 11, 99, request))
    _, body = await peer.receive()
    (found,) = response(FETCH, 11, body).responses[0].partitions
    assert found.error_code == 0
    return bytes(found.records)


def stored(*batches: bytes) -> bytes:
    """Batches as they are in a log, each behind the other."""
    found, offset = b"", 0
    for data in batches:
        header = parse_header(data).with_position(offset, 0)
        found += header.pack_start() + data[16:]
        offset += header.records_count
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_pieces_of_any_size_are_served_in_order(kafka: Harness, seed: int) -> None:
    dice = random.Random(seed)
    batches = [batch(dice.randbytes(dice.randrange(1, 400_000))) for _ in range(8)]
    sent = b"".join(
        produce(number, (0, data), version=dice.choice(VERSIONS)) + framed(api_versions(0, 100 + number))
        for number, data in enumerate(batches)
    )
    async with connect(kafka) as peer:
        while sent:
            size = dice.choice((1, 3, 1_000, 70_000, 300_000))
            peer.send_bytes(sent[:size])
            sent = sent[size:]
            await asyncio.sleep(0)
        answered = [(await peer.receive())[0] for _ in range(16)]
        assert answered == [correlation for number in range(8) for correlation in (number, 100 + number)]
        assert await log_of(peer) == stored(*batches)


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_stands_beside_a_batch_in_its_frame_is_never_taken_for_it(kafka: Harness, version: int) -> None:
    one, same, other = batch(b"a" * 500), batch(b"a" * 500), batch(b"b" * 500, b"c")
    async with connect(kafka) as peer:
        for number, batches in enumerate((((0, one),), ((0, one), (1, same)), ((1, other), (0, other)), ((0, same),))):
            peer.send_bytes(produce(number, *batches, version=version))
            assert (await peer.receive())[0] == number
        assert await log_of(peer, 0) == stored(one, one, other, same)
        assert await log_of(peer, 1) == stored(same, other)


@pytest.mark.parametrize("behind", [b"\0", b"\0\0\0", b"x" * 3, b"x" * 600])
async def test_bytes_behind_a_request_do_not_count(kafka: Harness, behind: bytes) -> None:
    data = batch(b"a" * 500)
    request = produce(1, (0, data))[4:] + behind
    async with connect(kafka) as peer:
        peer.send(request)
        await peer.receive()
        assert await log_of(peer) == stored(data)


DATA = batch(b"a" * 500)
BEHIND = {
    # The batch as it is sent, what stands where it would stand if nothing were behind it, and the error of the batch.
    "a batch with another content": (DATA, DATA[:61] + batch(b"z" * 500)[61:], 0),
    "the same batch": (DATA, DATA, 0),
    "the batch before it was damaged": (DATA[:-1] + b"x", DATA, 2),
}


@pytest.mark.parametrize("case", BEHIND)
async def test_a_batch_behind_a_request_is_not_the_one_in_it(kafka: Harness, case: str) -> None:
    sent, behind, error = BEHIND[case]
    async with connect(kafka) as peer:
        peer.send(produce(1, (0, sent))[4:] + behind + b"\0\0\0")
        _, body = await peer.receive()
        answered = response(PRODUCE, 9, body).responses[0].partition_responses[0].error_code
        assert (answered, await log_of(peer)) == (error, b"" if error else stored(sent))


def test_the_only_batch_of_a_request_is_not_copied() -> None:
    data = batch(b"a" * 500)
    for version in VERSIONS:
        codec, request = codec_of(PRODUCE.key, version), produce(1, (0, data), version=version)
        assert codec is not None
        body_at = 4 + 8 + 2 + len("test") + codec.is_flexible
        read: Any = codec.read_request(request, body_at)
        view = read.topic_data[0].partition_data[0].records
        found = _locate(view, parse_header(view), is_only=True)
        assert found.buffer is request
        assert request[found.at :].startswith(data)


async def test_a_part_of_a_frame_is_nothing(kafka: Harness) -> None:
    whole, cut = batch(b"a" * 300_000), batch(b"b" * 300_000)
    # All that a request needs is there; the frame is to have one byte more behind it.
    part = framed(produce(2, (0, cut))[4:] + b"\0")[:-1]
    async with connect(kafka) as other:
        async with connect(kafka) as peer:
            peer.send_bytes(produce(1, (0, whole)) + part)
            assert (await peer.receive())[0] == 1
        listener = kafka.app.kafka
        assert listener is not None
        while len(listener.connections) > 1:  # noqa: ASYNC110 - until the server has seen the end
            await asyncio.sleep(0.01)
        assert await log_of(other) == stored(whole)


async def test_a_frame_that_comes_slowly_does_not_make_its_connection_idle(kafka: Harness) -> None:
    sent, listener = produce(1, (0, batch(b"a" * 300_000))), kafka.app.kafka
    assert listener is not None
    async with connect(kafka) as peer, asyncio.timeout(30):
        peer.send_bytes(sent[:100_000])
        for at in range(100_000, 150_000, 10_000):
            while not (connections := list(listener.connections)) or connections[0]._large is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            connections[0].last_used = 0.0
            peer.send_bytes(sent[at : at + 10_000])
            while not connections[0].last_used:  # noqa: ASYNC110 - until the server has seen them
                await asyncio.sleep(0.01)
        peer.send_bytes(sent[150_000:])
        assert (await peer.receive())[0] == 1


def test_small_pieces_take_no_more_memory_than_they_have() -> None:
    frame = random.Random(1).randbytes(200_000)
    tracemalloc.start()
    try:
        large = LargeFrame(frame[:1], len(frame))
        rests = {large.take(frame[at : at + 1]) for at in range(1, len(frame))}
        assert rests == {None, b""}
        assert tracemalloc.get_traced_memory()[0] < 2 * len(frame)
    finally:
        tracemalloc.stop()
    assert large.joined() == frame


async def test_a_large_frame_waits_for_the_request_before_it(kafka: Harness) -> None:
    data = batch(b"a" * 500_000)
    async with connect(kafka) as peer, connect(kafka) as other:
        peer.send(join_group("g", 1))
        peer.send_bytes(produce(2, (0, data)))
        await other.ask(api_versions(0))
        assert await log_of(other) == b""
        kafka.clock.advance(3_000)
        assert [(await peer.receive())[0] for _ in range(2)] == [1, 2]
        assert await log_of(other) == stored(data)
