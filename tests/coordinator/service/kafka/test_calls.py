"""How many calls a request takes from its frame to its answer: a measure of its price that no load changes.

The bounds are a fifth above what it took when they were set. ``python -m benchmarks
heartbeats.kafka kafka.batches`` has the time.
"""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from rejoin.coordinator.service.kafka.connection import KafkaConnection
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.registry import CREATE_TOPICS, FETCH, HEARTBEAT, PRODUCE, Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.benchmarks.calls import calls_of
from tests.conformance.wire import Transport
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import Peer, framed, heartbeat
from tests.coordinator.service.kafka.test_repeated_requests import join_alone

RECORDS: Final = 16
REPETITIONS: Final = 20
VERSIONS: Final = {
    "Heartbeat": (HEARTBEAT.key, 0),
    "Produce": (PRODUCE.key, 9),
    "idempotent Produce": (PRODUCE.key, 9),
    "Fetch": (FETCH.key, 12),
}
AT_MOST: Final = {"Heartbeat": 56, "Produce": 260, "idempotent Produce": 287, "Fetch": 175}
"""Calls of Python's functions and of those in C, on average."""


def _frame(api: Api, version: int, request: Request) -> bytes:
    codec = codec_of(api.key, version)
    assert codec is not None
    return codec.request_frame(1, "test", request)


def _batch(producer_id: int = -1, epoch: int = -1, sequence: int = -1) -> bytes:
    records = write_records(DefaultRecord(index, 0, None, bytes(1_000)) for index in range(RECORDS))
    return sealed(BatchHeader(0, 0, -1, 2, 0, 0, RECORDS - 1, 0, 0, producer_id, epoch, sequence, RECORDS), records)


def _produce(batch: bytes | None = None) -> bytes:
    records = batch or _batch()
    data = TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=records),))
    return _frame(PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,)))


def _fetch() -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=len(_batch()))
    topics = (FetchTopic(topic="orders", partitions=(partition,)),)
    return _frame(FETCH, 12, FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics))


def _create() -> bytes:
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=(), configs=())
    return _frame(CREATE_TOPICS, 4, CreateTopicsRequest(topics=(topic,)))


def _error(name: str, answer: bytes) -> ErrorCode:
    """What an answer says of its only partition, or as a whole."""
    key, version = VERSIONS[name]
    codec = codec_of(key, version)
    assert codec is not None
    response: Any = codec.read_response_frame(answer)[1]
    if name != "Heartbeat":
        (topic,) = response.responses
        (response,) = topic.partitions if name == "Fetch" else topic.partition_responses
    error: ErrorCode = response.error_code
    return error


async def _member_id(node: Harness) -> str:
    """That of a member which is the only one of its group."""
    async with Peer(node.app.endpoints[0].port) as peer:
        return await join_alone(peer, "g")


@pytest.mark.parametrize("name", list(AT_MOST))
async def test_a_request_takes_few_calls(serve: Serve, name: str) -> None:
    node = await serve({"kafka_port": 0, "clock": None}, group_initial_rebalance_delay_ms=0)
    assert node.app.kafka is not None
    connection, transport = KafkaConnection(node.app.kafka, "PLAINTEXT"), Transport()
    connection.connection_made(cast(Any, transport))
    for first in (_create(), _produce(), _produce()):
        connection.data_received(first)
    member_id = await _member_id(node)
    frames = [
        _produce(_batch(producer_id=1_000, epoch=0, sequence=number * RECORDS)) for number in range(REPETITIONS + 2)
    ]
    if name != "idempotent Produce":
        frame = {"Produce": _produce(), "Fetch": _fetch()}.get(name) or framed(heartbeat("g", member_id))
        frames = [frame] * len(frames)
    first, last, *others = frames
    connection.data_received(first)
    transport.written = b""
    connection.data_received(last)
    assert _error(name, transport.written[4:]) == ErrorCode.NONE

    def send() -> None:
        for frame in others:
            connection.data_received(frame)

    calls = calls_of(send) / len(others)
    transport.written = b""
    connection.data_received(others[-1])
    assert _error(name, transport.written[4:]) == ErrorCode.NONE, "one that was repeated is answered as before"
    assert calls <= AT_MOST[name]
    connection.connection_lost(None)
