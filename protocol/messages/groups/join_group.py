"""JoinGroup (key 11): ask to be a member of the next generation; the answer comes when the join phase ends.

v1 adds the rebalance timeout (v0: the session timeout serves as one), v4 ``MEMBER_ID_REQUIRED`` (KIP-394), v5 the group
instance id (KIP-345), v7 the protocol type in the answer (KIP-559), v8 the reason (KIP-800), v9 ``skipAssignment``
(KIP-814).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Bytes, GroupId, GroupInstanceId, In, Int32, MemberId, SubscriptionBytes


class JoinGroupRequestProtocol(Struct):
    """An assignor that the member supports, with its metadata for the leader."""

    name: str
    metadata: SubscriptionBytes


class JoinGroupRequest(Request):
    """Join, or rejoin, a group. Protocols are listed in the member's order of preference."""

    group_id: GroupId
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, In(1)] = -1
    member_id: MemberId
    group_instance_id: Annotated[GroupInstanceId | None, In(5)] = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: Annotated[str | None, In(8)] = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return JoinGroupResponse(error_code=error, protocol_name=None if version >= 7 else "")


class JoinGroupResponseMember(Struct):
    """A member as the leader sees it: its metadata is for the selected protocol."""

    member_id: MemberId = ""
    group_instance_id: Annotated[GroupInstanceId | None, In(5)] = None
    metadata: Bytes = b""


class JoinGroupResponse(Response):
    """The generation joined. Only the leader gets the members."""

    throttle_time_ms: Annotated[Int32, In(2)] = 0
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, In(7)] = None
    protocol_name: Annotated[str | None, In(0, nullable=7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, In(9)] = False
    member_id: MemberId = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
