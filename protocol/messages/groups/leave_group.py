"""LeaveGroup (key 13): remove members at once, without waiting for their sessions to end.

v3 replaces the single member by a batch with one result each, v5 adds a reason for each (KIP-800).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, GroupInstanceId, In, Int32, MemberId


class MemberIdentity(Struct):
    """Who shall be removed: by member id, or by instance id with an empty member id."""

    member_id: MemberId
    group_instance_id: GroupInstanceId | None = None
    reason: Annotated[str | None, In(5)] = None


class LeaveGroupRequest(Request):
    """Remove one member (up to v2) or several."""

    group_id: GroupId
    member_id: Annotated[MemberId, In(0, 2, needed=True)] = ""
    members: Annotated[tuple[MemberIdentity, ...], In(3, needed=True)] = ()

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return LeaveGroupResponse(error_code=error)


class LeaveGroupResponseMember(Struct):
    """The result for one entry of the batch."""

    member_id: MemberId = ""
    group_instance_id: GroupInstanceId | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(Response):
    """Up to v2 the member's error is the top-level one."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: ErrorCode = ErrorCode.NONE
    members: Annotated[tuple[LeaveGroupResponseMember, ...], In(3)] = ()
