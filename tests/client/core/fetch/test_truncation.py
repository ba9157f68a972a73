"""A log that was truncated under its reader is found by its leader epochs (KIP-320)."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client import Consumer, TopicPartition
from rejoin.client.core.errors import LogTruncationError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse, FetchableTopicResponse, FetchResponse
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    LeaderEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from rejoin.protocol.registry import FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH
from tests.client.core.fetch.test_batches import batch, plain
from tests.client.transports.scripted_broker import Asked, ScriptedBroker

PARTITION = TopicPartition("t", 0)
TOPIC_ID = "t" * 21 + "A"


class TruncatedLog:
    """A broker that gives five records in epoch 2, and then leads in epoch 3, in which the log ends at 2."""

    def __init__(self) -> None:
        self.port = 0
        self.fetches: list[int] = []
        self.epochs: list[tuple[int, int]] = []

    def __call__(self, asked: Asked) -> Response | None:
        request: Any = asked.request
        if asked.api is METADATA:
            partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=3 if self.fetches else 2)
            topic = MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
            node = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
            return MetadataResponse(brokers=(node,), topics=(topic,))
        if asked.api is OFFSET_FOR_LEADER_EPOCH:
            assert isinstance(request, OffsetForLeaderEpochRequest)
            wanted = request.topics[0].partitions[0]
            self.epochs.append((wanted.current_leader_epoch, wanted.leader_epoch))
            ends = LeaderEpochEndOffset(partition=0, leader_epoch=2, end_offset=2)
            return OffsetForLeaderEpochResponse(topics=(OffsetForLeaderTopicResult(topic="t", partitions=(ends,)),))
        assert asked.api is FETCH
        if not request.topics:
            return None
        self.fetches.append(request.topics[0].partitions[0].fetch_offset)
        if len(self.fetches) == 1:
            answer = FetchablePartitionResponse(high_watermark=5, records=batch(0, plain(5), epoch=2))
        elif len(self.fetches) == 2:
            answer = FetchablePartitionResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH)
        else:
            answer = FetchablePartitionResponse(high_watermark=4, records=batch(2, plain(2, 7), epoch=3))
        return FetchResponse(responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(answer,)),))


async def test_with_a_reset_policy_the_reader_goes_on_where_the_logs_part() -> None:
    log = TruncatedLog()
    async with ScriptedBroker(log) as broker:
        log.port = broker.port
        async with Consumer(bootstrap_servers=broker.address, retry_backoff_ms=1) as consumer:
            await consumer.assign([PARTITION])
            consumer.seek(PARTITION, 0)
            assert len(await consumer.poll(10_000)) == 5
            again = await consumer.poll(10_000)
            assert [(record.offset, record.value, record.leader_epoch) for record in again] == [
                (2, b"7", 3),
                (3, b"8", 3),
            ]
    assert log.fetches[:3] == [0, 5, 2]
    assert log.epochs[0] == (3, 2)


async def test_without_a_policy_truncation_is_an_error_that_says_where() -> None:
    log = TruncatedLog()
    async with ScriptedBroker(log) as broker:
        log.port = broker.port
        settings: dict[str, Any] = {"retry_backoff_ms": 1, "auto_offset_reset": "none"}
        async with Consumer(bootstrap_servers=broker.address, **settings) as consumer:
            await consumer.assign([PARTITION])
            consumer.seek(PARTITION, 0)
            await consumer.poll(10_000)
            with pytest.raises(LogTruncationError, match="the log of t-0 was truncated at 2: position 5 is gone"):
                await consumer.poll(10_000)
