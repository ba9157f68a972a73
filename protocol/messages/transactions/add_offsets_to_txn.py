"""AddOffsetsToTxn (key 25): the offsets partition of a group becomes part of a transaction."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import GroupId, Int16, Int32, ProducerId, TransactionalId


class AddOffsetsToTxnRequest(Request):
    """Offsets of a group will be committed with this transaction."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: Int16
    group_id: GroupId

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return AddOffsetsToTxnResponse(error_code=error)


class AddOffsetsToTxnResponse(Response):
    """Whether the producer may add offsets to its transaction."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
