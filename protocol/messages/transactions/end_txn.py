"""EndTxn (key 26): commit or abort a transaction.

From v5 on each end raises the epoch, and the response has the producer id and epoch to go on with (KIP-890).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import In, Int16, Int32, ProducerId, TransactionalId


class EndTxnRequest(Request):
    """End the transaction of this producer."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: Int16
    committed: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return EndTxnResponse(error_code=error)


class EndTxnResponse(Response):
    """Whether the end is decided. Its markers may still be under way."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: Annotated[ProducerId, In(5)] = -1
    producer_epoch: Annotated[Int16, In(5)] = -1
