"""InitProducerId (key 22): a producer id and epoch, for idempotence and for transactions.

v3 lets a producer name the id and epoch that it has (KIP-360), v4 and v5 answer newer errors.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import In, Int16, Int32, ProducerId, TransactionalId


class InitProducerIdRequest(Request):
    """Ask for a producer id; without a transactional id it is a new one."""

    transactional_id: TransactionalId | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[ProducerId, In(3)] = -1
    producer_epoch: Annotated[Int16, In(3)] = -1

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return InitProducerIdResponse(error_code=error, producer_epoch=-1)


class InitProducerIdResponse(Response):
    """The producer's id and epoch."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: ProducerId = -1
    producer_epoch: Int16 = 0
