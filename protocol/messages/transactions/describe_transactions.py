"""DescribeTransactions (key 65): how far transactions are (KIP-664)."""

from typing import ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int16, Int32, Int64, PartitionIndex, ProducerId, TopicName, TransactionalId


class DescribeTransactionsRequest(Request):
    """Describe the transactions of these ids."""

    transactional_ids: tuple[TransactionalId, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        states = (DescribedTransaction(transactional_id=each, error_code=error) for each in self.transactional_ids)
        return DescribeTransactionsResponse(transaction_states=tuple(states))


class DescribedTransactionTopic(Struct):
    """Partitions of one topic that are part of a transaction."""

    topic: TopicName = ""
    partitions: tuple[PartitionIndex, ...] = ()


class DescribedTransaction(Struct):
    """The newest transaction of an id. Its start stays when it has ended, and is -1 before the first."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    transactional_id: TransactionalId = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: ProducerId = 0
    producer_epoch: Int16 = 0
    topics: tuple[DescribedTransactionTopic, ...] = ()


class DescribeTransactionsResponse(Response):
    """The state of each transaction."""

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[DescribedTransaction, ...] = ()
