"""ListTransactions (key 66): the transactions that a node coordinates (KIP-664).

v1 filters by how long they run, v2 by a pattern of their ids.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int32, Int64, ProducerId, TransactionalId


class ListTransactionsRequest(Request):
    """List transactions; an empty filter lets everything through."""

    state_filters: tuple[str, ...]
    producer_id_filters: tuple[ProducerId, ...]
    duration_filter: Annotated[Int64, In(1)] = -1
    transactional_id_pattern: Annotated[str | None, In(2)] = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ListTransactionsResponse(error_code=error)


class ListedTransaction(Struct):
    """A transactional id with its state."""

    transactional_id: TransactionalId = ""
    producer_id: ProducerId = 0
    transaction_state: str = ""


class ListTransactionsResponse(Response):
    """The transactions, and those of the state filters that are no state."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[ListedTransaction, ...] = ()
