"""A node, and producers with transactions on it, as few words as the tests need."""

from __future__ import annotations

from typing import Any

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from rejoin.protocol.messages.transactions.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
)
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.wire.record_batch import (
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
    sealed,
)
from rejoin.protocol.wire.records import DefaultRecord, write_records
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import TOPIC, DrivenNode

TXN = "tx"


def node(**settings: Any) -> DrivenNode:
    """A node with one partition of each internal topic."""
    usual = {"transaction_state_log_num_partitions": 1, "transaction_partition_verification_enable": True}
    return DrivenNode(**(usual | settings))


class Producer:
    """A producer with a transactional id."""

    def __init__(self, driven: DrivenNode, transactional_id: str = TXN, timeout_ms: int = 60_000) -> None:
        self.driven = driven
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self.sequence = 0

    def init(self, *, again: bool = False) -> ErrorCode:
        """InitProducerId; ``again`` with what it has."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=self.producer_id if again else -1,
            producer_epoch=self.epoch if again else -1,
        )
        answer: InitProducerIdResponse = self.driven.ask(request, 5)
        if answer.error_code is ErrorCode.NONE:
            self.use(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def use(self, producer_id: int, epoch: int) -> None:
        """Go on with these; sequences begin again with a new epoch."""
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch, self.sequence = producer_id, epoch, 0

    def add(self) -> None:
        """AddPartitionsToTxn, as a client of versions 0 and 1 sends it before its first record."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,)),),
        )
        self.driven.ask(request, 3)

    def produce(self, version: int = 12, value: bytes = b"v", key: bytes | None = None) -> ErrorCode | None:
        """Produce one record; none while the request waits."""
        data = batch(self.producer_id, self.epoch, self.sequence, key, value)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=data),)),),
        )
        answer = self.driven.ask(request, version)
        if answer is None:
            return None
        error: ErrorCode = answer.responses[0].partition_responses[0].error_code
        self.sequence += error is ErrorCode.NONE
        return error

    def end(self, *, commits: bool = True, version: int = 5) -> ErrorCode:
        """EndTxn; from version 5 on it gives the next epoch."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        answer = self.driven.ask(request, version)
        if version >= 5 and answer.error_code is ErrorCode.NONE:
            self.use(answer.producer_id, answer.producer_epoch)
        error: ErrorCode = answer.error_code
        return error

    def described(self) -> DescribedTransaction:
        request = DescribeTransactionsRequest(transactional_ids=(self.transactional_id,))
        found: DescribedTransaction = self.driven.ask(request, 0).transaction_states[0]
        return found


def batch(
    producer_id: int,
    epoch: int,
    sequence: int,
    key: bytes | None = None,
    value: bytes = b"v",
    *,
    is_transactional: bool = True,
) -> bytes:
    """A batch of one record."""
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL_BIT if is_transactional else 0,
        last_offset_delta=0,
        base_timestamp=START,
        max_timestamp=START,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        records_count=1,
    )
    return sealed(header, write_records([DefaultRecord(0, 0, key, value)]))


def fetch(driven: DrivenNode, offset: int = 0, *, committed: bool = True) -> Any:
    """What partition 0 of the topic gives to a reader of committed records, or of all."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=(FetchTopic(topic=TOPIC, partitions=(asked,)),),
        forgotten_topics_data=(),
    )
    return driven.ask(request, 12).responses[0].partitions[0]


def markers(data: bytes) -> list[tuple[int, int]]:
    """Producer id and epoch of each marker in these bytes."""
    found, at = [], 0
    while at < len(data):
        header = parse_header(data, at)
        if header.is_control:
            found.append((header.producer_id, header.producer_epoch))
        at += header.size
    return found
