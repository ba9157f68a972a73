"""AlterConfigs (key 33) replaces all settings of a topic or node, IncrementalAlterConfigs (key 44) single ones.

Both answer alike. KIP-339 adds the second.
"""

from collections.abc import Sequence

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int8, Int32, ResourceName


class AlterConfigsResourceResponse(Struct):
    """The result for one resource."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Response):
    """A result for each resource."""

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()


class IncrementalAlterConfigsResponse(AlterConfigsResponse):
    """A result for each resource."""


class AlterableConfig(Struct):
    """A setting; null means its default."""

    name: str
    value: str | None


class AlterConfigsResource(Struct):
    """A topic (type 2) or a node (type 4) with all its settings."""

    resource_type: Int8
    resource_name: ResourceName
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Request):
    """Replace settings. Kafka deprecates it."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return AlterConfigsResponse(responses=_failed(self.resources, error))


class IncrementallyAlterableConfig(Struct):
    """A setting, and what to do with it: 0 sets it, 1 deletes it, 2 appends to it, 3 takes away from it."""

    name: str
    config_operation: Int8
    value: str | None


class IncrementalAlterConfigsResource(Struct):
    """A topic (type 2) or a node (type 4) with the settings to change."""

    resource_type: Int8
    resource_name: ResourceName
    configs: tuple[IncrementallyAlterableConfig, ...]


class IncrementalAlterConfigsRequest(Request):
    """Change settings."""

    resources: tuple[IncrementalAlterConfigsResource, ...]
    validate_only: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return IncrementalAlterConfigsResponse(responses=_failed(self.resources, error))


def _failed(
    resources: Sequence[AlterConfigsResource | IncrementalAlterConfigsResource], error: ErrorCode
) -> tuple[AlterConfigsResourceResponse, ...]:
    return tuple(
        AlterConfigsResourceResponse(
            error_code=error,
            error_message=error.name,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource in resources
    )
