"""FindCoordinator (key 10): which node coordinates a group or a transactional id.

v1 adds the key type and an error message, v4 several keys in one request (KIP-699), v6 the key type SHARE.
"""

from typing import Annotated, ClassVar, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, CoordinatorKey, In, Int8, Int32

NO_NODE: Final = -1


class FindCoordinatorRequest(Request):
    """Look up one key (up to v3) or several."""

    key: Annotated[CoordinatorKey, In(0, 3, needed=True)] = ""
    key_type: Annotated[Int8, In(1)] = 0
    coordinator_keys: Annotated[tuple[CoordinatorKey, ...], In(4, needed=True)] = ()

    def error_response(self, version: int, error: ErrorCode) -> Response:
        if version >= 4:
            return FindCoordinatorResponse(
                coordinators=tuple(no_coordinator(key, error) for key in self.coordinator_keys)
            )
        return FindCoordinatorResponse(
            error_code=error, error_message=error.name, node_id=NO_NODE, host="", port=NO_NODE
        )


class Coordinator(Struct):
    """The coordinator of one key, or why there is none."""

    IS_REPEATED: ClassVar[bool] = True

    key: str = ""
    node_id: BrokerId = 0
    host: str = ""
    port: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


def no_coordinator(key: str, error: ErrorCode) -> Coordinator:
    """A key without a coordinator."""
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error)


class FindCoordinatorResponse(Response):
    """One coordinator (up to v3) or one for each key."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: Annotated[ErrorCode, In(0, 3)] = ErrorCode.NONE
    error_message: Annotated[str | None, In(1, 3)] = ""
    node_id: Annotated[BrokerId, In(0, 3)] = 0
    host: Annotated[str, In(0, 3)] = ""
    port: Annotated[Int32, In(0, 3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], In(4)] = ()
