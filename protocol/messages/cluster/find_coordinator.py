"""FindCoordinator (key 10): which node coordinates a group or a transactional id.

v1 adds the key type and an error message, v4 several keys in one request (KIP-699), v6 the key type SHARE.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import In, Int8, Int32, Request, Response, Struct


class FindCoordinatorRequest(Request):
    """Look up one key (up to v3) or several."""

    key: Annotated[str, In(0, 3, needed=True)] = ""
    key_type: Annotated[Int8, In(1)] = 0
    coordinator_keys: Annotated[tuple[str, ...], In(4, needed=True)] = ()


class Coordinator(Struct):
    """The coordinator of one key, or why there is none."""

    key: str = ""
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class FindCoordinatorResponse(Response):
    """One coordinator (up to v3) or one for each key."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    error_code: Annotated[ErrorCode, In(0, 3)] = ErrorCode.NONE
    error_message: Annotated[str | None, In(1, 3)] = ""
    node_id: Annotated[Int32, In(0, 3)] = 0
    host: Annotated[str, In(0, 3)] = ""
    port: Annotated[Int32, In(0, 3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], In(4)] = ()
