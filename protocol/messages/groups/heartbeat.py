"""Heartbeat (key 12): keep the session alive, and learn of a rebalance. v3 adds the group instance id."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import In, Int32, Request, Response


class HeartbeatRequest(Request):
    """Keep a member's session alive."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, In(3)] = None


class HeartbeatResponse(Response):
    """No error, or the reason to rejoin or to start again."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: ErrorCode = ErrorCode.NONE
