"""ListGroups (key 16): the groups of this node.

v4 adds the state and a filter on it (KIP-518), v5 the type (KIP-848).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, In, Int32


class ListGroupsRequest(Request):
    """List groups; filters are case-insensitive, and an empty one lets everything through."""

    states_filter: Annotated[tuple[str, ...], In(4, needed=True)] = ()
    types_filter: Annotated[tuple[str, ...], In(5, needed=True)] = ()

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ListGroupsResponse(error_code=error)


class ListedGroup(Struct):
    """A group in the list."""

    group_id: GroupId = ""
    protocol_type: str = ""
    group_state: Annotated[str, In(4)] = ""
    group_type: Annotated[str, In(5)] = ""


class ListGroupsResponse(Response):
    """The groups that this node coordinates."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()
