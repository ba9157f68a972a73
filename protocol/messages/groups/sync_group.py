"""SyncGroup (key 14): the leader sends all assignments, each member fetches its own.

v3 adds the group instance id, v5 protocol type and name, both mandatory there (KIP-559).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Bytes, GroupId, GroupInstanceId, In, Int32, MemberId


class SyncGroupRequestAssignment(Struct):
    """The assignment of one member. The coordinator does not look inside."""

    member_id: MemberId
    assignment: Bytes


class SyncGroupRequest(Request):
    """Fetch the assignment of this generation; the leader's request carries those of all members."""

    group_id: GroupId
    generation_id: Int32
    member_id: MemberId
    group_instance_id: Annotated[GroupInstanceId | None, In(3)] = None
    protocol_type: Annotated[str | None, In(5)] = None
    protocol_name: Annotated[str | None, In(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return SyncGroupResponse(error_code=error)


class SyncGroupResponse(Response):
    """This member's assignment, exactly the bytes the leader sent for it."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: Annotated[str | None, In(5)] = None
    protocol_name: Annotated[str | None, In(5)] = None
    assignment: Bytes = b""
