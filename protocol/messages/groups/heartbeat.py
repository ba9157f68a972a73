"""Heartbeat (key 12): keep the session alive, and learn of a rebalance. v3 adds the group instance id."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import GroupId, GroupInstanceId, In, Int32, MemberId


class HeartbeatRequest(Request):
    """Keep a member's session alive."""

    group_id: GroupId
    generation_id: Int32
    member_id: MemberId
    group_instance_id: Annotated[GroupInstanceId | None, In(3)] = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return HeartbeatResponse(error_code=error)


class HeartbeatResponse(Response):
    """No error, or the reason to rejoin or to start again."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: ErrorCode = ErrorCode.NONE
