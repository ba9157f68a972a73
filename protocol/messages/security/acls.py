"""CreateAcls (key 30), DescribeAcls (29) and DeleteAcls (31): access control entries.

v1 adds the type of the pattern; before, every name is literal. v3 adds users as resources.
Numbers: kinds of resources 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user; patterns
3 literal, 4 prefixed; permissions 2 deny, 3 allow. In filters 1 is any of each, and pattern 2 is every pattern that
fits a name.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int8, Int32

LITERAL = 3


class AclCreation(Struct):
    """A new entry."""

    resource_type: Int8
    resource_name: str
    resource_pattern_type: Annotated[Int8, In(1)] = LITERAL
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request):
    """Add entries. One that exists already is no error."""

    creations: tuple[AclCreation, ...]

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        result = AclCreationResult(error_code=error, error_message=message)
        return CreateAclsResponse(results=(result,) * len(self.creations))


class AclCreationResult(Struct):
    """The result for one entry."""

    IS_REPEATED = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreateAclsResponse(Response):
    """A result for each entry, in the order of the request."""

    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...] = ()


class DescribeAclsRequest(Request):
    """List the entries that a filter selects; null is every name."""

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Annotated[Int8, In(1)] = LITERAL
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return DescribeAclsResponse(error_code=error, error_message=message)


class AclDescription(Struct):
    """An entry on the resource that it stands with."""

    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    """A pattern of resources with its entries."""

    resource_type: Int8
    resource_name: str
    pattern_type: Annotated[Int8, In(1)] = LITERAL
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(Response):
    """The entries by pattern."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resources: tuple[DescribeAclsResource, ...] = ()


class DeleteAclsFilter(Struct):
    """Selects entries to delete; null is every name."""

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Annotated[Int8, In(1)] = LITERAL
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Request):
    """Delete the entries that one of the filters selects."""

    filters: tuple[DeleteAclsFilter, ...]

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        result = DeleteAclsFilterResult(error_code=error, error_message=message)
        return DeleteAclsResponse(filter_results=(result,) * len(self.filters))


class DeleteAclsMatchingAcl(Struct):
    """An entry that a filter selected."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: Int8
    resource_name: str
    pattern_type: Annotated[Int8, In(1)] = LITERAL
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    """The entries that one filter selected."""

    IS_REPEATED = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


class DeleteAclsResponse(Response):
    """A result for each filter, in the order of the request."""

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
