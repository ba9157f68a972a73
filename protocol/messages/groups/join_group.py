"""JoinGroup (key 11): ask to be a member of the next generation; the answer comes when the join phase ends.

v1 adds the rebalance timeout (v0: the session timeout serves as one), v4 ``MEMBER_ID_REQUIRED`` (KIP-394), v5 the group
instance id (KIP-345), v7 the protocol type in the answer (KIP-559), v8 the reason (KIP-800), v9 ``skipAssignment``
(KIP-814).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Bytes, In, Int32, Request, Response, Struct


class JoinGroupRequestProtocol(Struct):
    """An assignor the member could use, with what it would tell the leader."""

    name: str
    metadata: Bytes


class JoinGroupRequest(Request):
    """Join, or rejoin, a group. Protocols are listed in the member's order of preference."""

    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, In(1)] = -1
    member_id: str
    group_instance_id: Annotated[str | None, In(5)] = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: Annotated[str | None, In(8)] = None


class JoinGroupResponseMember(Struct):
    """A member as the leader sees it: its metadata is for the selected protocol."""

    member_id: str = ""
    group_instance_id: Annotated[str | None, In(5)] = None
    metadata: Bytes = b""


class JoinGroupResponse(Response):
    """The generation joined. Only the leader gets the members."""

    throttle_time_ms: Annotated[Int32, In(2)] = 0
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, In(7)] = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: Annotated[bool, In(9)] = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
