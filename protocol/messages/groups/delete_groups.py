"""DeleteGroups (key 42): delete Empty groups with all their offsets (KIP-229).

v3 has a text beside each error.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, In, Int32


class DeleteGroupsRequest(Request):
    """Delete groups by id."""

    groups_names: tuple[GroupId, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        results = (DeletableGroupResult(group_id=name, error_code=error) for name in self.groups_names)
        return DeleteGroupsResponse(results=tuple(results))


class DeletableGroupResult(Struct):
    """The result for one group."""

    group_id: GroupId = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(3)] = None
    """Kafka 4.4 leaves it null for groups that are not there or not empty."""


class DeleteGroupsResponse(Response):
    """A result for each group."""

    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...] = ()
