"""ApiVersions (key 18): which requests are understood, in which versions.

v3 says what the client is, v5 which cluster and node it takes this for (KIP-1242).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int16, Int32, Int64


class ApiVersionsRequest(Request):
    """Ask for the supported versions. A client that knows no cluster yet leaves out its id and the node's."""

    client_software_name: Annotated[str, In(3, needed=True)] = ""
    client_software_version: Annotated[str, In(3, needed=True)] = ""
    cluster_id: Annotated[str | None, In(5)] = None
    node_id: Annotated[Int32, In(5)] = -1

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ApiVersionsResponse(error_code=error)


class ApiVersion(Struct):
    """The versions of one API."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct):
    """A feature that this node supports."""

    name: str = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct):
    """A feature that the cluster has agreed on."""

    name: str = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Response):
    """The supported versions of each API."""

    error_code: ErrorCode = ErrorCode.NONE
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: Annotated[Int32, In(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], In(3, tag=0)] = ()
    finalized_features_epoch: Annotated[Int64, In(3, tag=1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], In(3, tag=2)] = ()
    zk_migration_ready: Annotated[bool, In(3, tag=3)] = False
