"""A service in this process, and producers with transactions on it: requests and answers are objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.record_batch import MAGIC, TRANSACTIONAL_BIT, BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records

TOPIC: Final = "payments"
GROUP: Final = "transformers"
INIT_VERSION: Final = 5
PRODUCE_VERSION: Final = 12
COMMIT_VERSION: Final = 5
END_VERSION: Final = 5
START: Final = 1_767_225_600_000
RECORDS: Final = write_records([DefaultRecord(0, 0, b"account-17", bytes(100))])
LOAD_SECONDS: Final = 30.0
UNKNOWN_ID: Final = "no-such-transformer"
UNKNOWN_PRODUCER_ID: Final = 2**40


def batch(producer_id: int, epoch: int, time: int = START) -> bytes:
    """The first batch of a transaction, with one record."""
    header = BatchHeader(0, 0, -1, MAGIC, 0, TRANSACTIONAL_BIT, 0, time, time, producer_id, epoch, 0, 1)
    return sealed(header, RECORDS)


async def ask(app: App, request: Request, version: int) -> Any:
    """The answer of a service in this process."""
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    app.runtime.submit(request, Context(api_version=version)).when_answered(done.set_result)
    return await done


async def make_topic(app: App, partitions: int) -> None:
    """The topic that is written to, as soon as the service leads its partitions."""
    topic = CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    created = await ask(app, CreateTopicsRequest(topics=(topic,)), 5)
    assert created.topics[0].error_code is ErrorCode.NONE, created


class TransactionalProducer:
    """Produces within transactions of version 2, in which each end raises the epoch."""

    def __init__(self, app: App, transactional_id: str) -> None:
        self._app = app
        self._transactional_id = transactional_id
        self._producer_id = -1
        self._epoch = -1

    async def init(self) -> None:
        """InitProducerId, again while the service still loads."""
        request = InitProducerIdRequest(transactional_id=self._transactional_id, transaction_timeout_ms=60_000)
        until = asyncio.get_running_loop().time() + LOAD_SECONDS
        while True:
            answer = await ask(self._app, request, INIT_VERSION)
            if answer.error_code is ErrorCode.NONE:
                break
            assert asyncio.get_running_loop().time() < until, answer
            await asyncio.sleep(0.01)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    async def produce(self, partitions: Iterable[int] = (0,)) -> None:
        """One record to each partition."""
        request = self._produce_request(self._transactional_id, self._producer_id, partitions)
        errors = {ErrorCode.CONCURRENT_TRANSACTIONS}
        while errors == {ErrorCode.CONCURRENT_TRANSACTIONS}:
            # As clients do, where the markers of the last transaction took longer than a broker waits.
            answer = await ask(self._app, request, PRODUCE_VERSION)
            errors = {each.error_code for each in answer.responses[0].partition_responses}
        assert errors == {ErrorCode.NONE}, answer

    async def send_offsets(self, offset: int) -> None:
        """Commit an offset of the group within the transaction."""
        request = self._commit_request(self._transactional_id, self._producer_id, offset)
        answer = await ask(self._app, request, COMMIT_VERSION)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE, answer

    async def be_refused(self, offset: int) -> None:
        """The requests of a transaction, of a producer that the service does not know."""
        request = self._produce_request(UNKNOWN_ID, UNKNOWN_PRODUCER_ID, (0,))
        answer = await ask(self._app, request, PRODUCE_VERSION)
        errors = [answer.responses[0].partition_responses[0].error_code]
        answer = await ask(self._app, self._commit_request(UNKNOWN_ID, UNKNOWN_PRODUCER_ID, offset), COMMIT_VERSION)
        errors.append(answer.topics[0].partitions[0].error_code)
        answer = await ask(self._app, self._end_request(UNKNOWN_ID, UNKNOWN_PRODUCER_ID, True), END_VERSION)
        errors.append(answer.error_code)
        assert errors == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3, errors

    def _produce_request(self, transactional_id: str, producer_id: int, partitions: Iterable[int]) -> ProduceRequest:
        # Requests are validated where they are read, which is the codec's work.
        records = batch(producer_id, self._epoch)
        data = [unvalidated(PartitionProduceData, index=partition, records=records) for partition in partitions]
        return unvalidated(
            ProduceRequest,
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=(unvalidated(TopicProduceData, name=TOPIC, topic_id=ZERO_UUID, partition_data=tuple(data)),),
        )

    def _commit_request(self, transactional_id: str, producer_id: int, offset: int) -> TxnOffsetCommitRequest:
        committed = unvalidated(
            TxnOffsetCommitRequestPartition,
            partition_index=0,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        return unvalidated(
            TxnOffsetCommitRequest,
            transactional_id=transactional_id,
            group_id=GROUP,
            producer_id=producer_id,
            producer_epoch=self._epoch,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=(unvalidated(TxnOffsetCommitRequestTopic, name=TOPIC, topic_id=ZERO_UUID, partitions=(committed,)),),
        )

    def _end_request(self, transactional_id: str, producer_id: int, commits: bool) -> EndTxnRequest:
        return unvalidated(
            EndTxnRequest,
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=self._epoch,
            committed=commits,
        )

    async def end(self, *, commits: bool = True) -> None:
        """EndTxn, which gives the next epoch."""
        request = self._end_request(self._transactional_id, self._producer_id, commits)
        answer = await ask(self._app, request, END_VERSION)
        assert answer.error_code is ErrorCode.NONE, answer
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
