"""DescribeConfigs (key 32): settings of topics and nodes. v3 adds types and documentation (KIP-569)."""

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int32, ResourceName


class DescribeConfigsResource(Struct):
    """A topic (type 2) or a node (type 4), and the settings asked for; null means all."""

    resource_type: Int8
    resource_name: ResourceName
    configuration_keys: tuple[str, ...] | None


class DescribeConfigsRequest(Request):
    """Describe settings."""

    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = False
    include_documentation: Annotated[bool, In(3)] = False

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return DescribeConfigsResponse(
            results=tuple(
                DescribeConfigsResult(
                    error_code=error,
                    error_message=message or error.name,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in self.resources
            )
        )


class DescribeConfigsSynonym(Struct):
    """Where else the value may come from, nearest first."""

    name: str = ""
    value: str | None = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(Struct):
    """A setting."""

    IS_REPEATED: ClassVar[bool] = True

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: Annotated[Int8, In(3)] = 0
    documentation: Annotated[str | None, In(3)] = ""


class DescribeConfigsResult(Struct):
    """The settings of one resource."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Response):
    """A result for each resource."""

    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...] = ()
