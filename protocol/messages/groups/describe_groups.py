"""DescribeGroups (key 15): state, protocol and members of groups.

v3 adds authorized operations (KIP-430), v4 the members' instance ids (KIP-345), v6 an error
and a text for groups that do not exist.
"""

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Bytes, GroupId, GroupInstanceId, In, Int32, MemberId


class DescribeGroupsRequest(Request):
    """Describe groups by id."""

    groups: tuple[GroupId, ...]
    include_authorized_operations: Annotated[bool, In(3, needed=True)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        groups = (DescribedGroup(group_id=group_id, error_code=error) for group_id in self.groups)
        return DescribeGroupsResponse(groups=tuple(groups))


class DescribedGroupMember(Struct):
    """A member; metadata is shown for a Stable group only."""

    member_id: MemberId = ""
    group_instance_id: Annotated[GroupInstanceId | None, In(4)] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Struct):
    """A group; one that does not exist is Dead, without an error up to v5."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(6)] = None
    group_id: GroupId = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: Annotated[Int32, In(3)] = -2147483648


class DescribeGroupsResponse(Response):
    """A description for each group asked for."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    groups: tuple[DescribedGroup, ...] = ()
