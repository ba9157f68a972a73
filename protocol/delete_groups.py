"""DeleteGroups (key 42): delete Empty groups with all their offsets (KIP-229)."""

from protocol.base import Int32, Request, Response, Struct
from protocol.errors import ErrorCode


class DeleteGroupsRequest(Request):
    """Delete groups by id."""

    groups_names: tuple[str, ...]


class DeletableGroupResult(Struct):
    """What became of one group."""

    group_id: str = ""
    error_code: ErrorCode = ErrorCode.NONE


class DeleteGroupsResponse(Response):
    """A result for each group."""

    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...] = ()
