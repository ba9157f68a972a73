"""DeleteGroups (key 42): delete Empty groups with all their offsets (KIP-229)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Int32, Request, Response, Struct


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
