"""ListConfigResources (key 74): resources that have settings, by name. v0 lists subscriptions to client metrics alone.

It was ListClientMetricsResources before Kafka 4.1 (KIP-1000, KIP-1142).
"""

from typing import Annotated, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int32

CLIENT_METRICS_TYPE: Final = 16


class ListConfigResourcesRequest(Request):
    """List resources of some types; no types stand for all."""

    resource_types: Annotated[tuple[Int8, ...], In(1)] = ()

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return ListConfigResourcesResponse(error_code=error)


class ConfigResourceName(Struct):
    """A resource."""

    resource_name: str = ""
    resource_type: Annotated[Int8, In(1)] = CLIENT_METRICS_TYPE


class ListConfigResourcesResponse(Response):
    """The resources, in no particular order."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    config_resources: tuple[ConfigResourceName, ...] = ()
