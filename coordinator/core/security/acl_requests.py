"""CreateAcls, DescribeAcls and DeleteAcls: checked, and turned into records of the topics log.

Kafka: AclApis, AclControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.acls import ANY, Acl, AclFilter, AclTable
from rejoin.coordinator.core.security.acls import creation as creation_record
from rejoin.coordinator.core.security.acls import removal as removal_record
from rejoin.coordinator.core.security.hosts import host_problem
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.security.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from rejoin.protocol.security.acl_bindings import PatternType, Permission

LONGEST_TEXT: Final = 1_024
"""Characters of a name, a principal or a host of an ACL."""
# Differs: Kafka takes as much as a text of its protocol can have, and as many ACLs as there is room for.

MOST_COMPARISONS: Final = 2_000_000
"""Filters of a DeleteAcls times ACLs: one thread serves all clients."""

UNKNOWN: Final = 0
"""Kafka's number for what has none."""

_RESOURCES: Final = frozenset(each.code for each in Resource)
_OPERATIONS: Final = frozenset(each.code for each in Operation)
_PATTERNS: Final = frozenset(PatternType)
_PERMISSIONS: Final = frozenset(Permission)

Asked: TypeAlias = CreateAclsRequest | DescribeAclsRequest | DeleteAclsRequest


class _Refusal(NamedTuple):
    error: ErrorCode
    message: str | None


class AclRequests:
    """Answers requests about ACLs, and changes the table of them."""

    def __init__(self, ctx: StepContext, changes: TopicChanges, admission: Admission) -> None:
        self._ctx = ctx
        self._changes = changes
        self._admission = admission

    def create_acls(self, token: Token, request: CreateAclsRequest, context: Context) -> None:
        if not self._refuse(token, request, context):
            self._changes.make(_Creation(self._ctx, token, request))

    def describe_acls(self, token: Token, request: DescribeAclsRequest, context: Context) -> None:
        if not self._refuse(token, request, context):
            selected = filter(_filter(request).matches, self._ctx.security.acls.ids)
            self._ctx.reply(token, DescribeAclsResponse(error_message="", resources=_by_pattern(selected)))

    def delete_acls(self, token: Token, request: DeleteAclsRequest, context: Context) -> None:
        if not self._refuse(token, request, context):
            self._changes.make(_Removal(self._ctx, token, request))

    def _refuse(self, token: Token, request: Asked, context: Context) -> bool:
        """Answer a request that is refused as a whole."""
        refusal = self._refusal(request, context)
        if refusal is None:
            return False
        self._ctx.reply(token, request.error_response(context.api_version, refusal.error, refusal.message))
        return True

    def _refusal(self, request: Asked, context: Context) -> _Refusal | None:
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is not ErrorCode.NONE:
            return _Refusal(error, None)
        if not self._ctx.security.authorizer.has_acls:
            where = " on the broker" if isinstance(request, DescribeAclsRequest) else "."
            return _Refusal(ErrorCode.SECURITY_DISABLED, f"No Authorizer is configured{where}")
        numbers = _numbers(request)
        if UNKNOWN in numbers:
            # Differs: Kafka closes the connection.
            return _Refusal(
                ErrorCode.INVALID_REQUEST, "0 stands for a resource, pattern, operation or permission that is unknown"
            )
        if isinstance(request, CreateAclsRequest) and any(map(_is_of_filters, request.creations)):
            # Kafka: an unexpected exception, so that no entry of the request is added.
            return _Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "any and match are for filters: no ACL has them")
        return None


def _numbers(request: Asked) -> set[int]:
    """The types, patterns, operations and permissions that a request names."""
    if isinstance(request, CreateAclsRequest):
        return {number for each in request.creations for number in _acl(each) if isinstance(number, int)}
    filters = (request,) if isinstance(request, DescribeAclsRequest) else request.filters
    return {number for each in filters for number in _filter(each) if isinstance(number, int)}


def _is_of_filters(wanted: AclCreation) -> bool:
    """Whether an entry has a number that only filters may have."""
    is_any = ANY in {wanted.resource_type, wanted.operation, wanted.permission_type}
    return is_any or wanted.resource_pattern_type in {PatternType.ANY, PatternType.MATCH}


def _by_pattern(acls: Iterable[Acl]) -> tuple[DescribeAclsResource, ...]:
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in acls:
        description = AclDescription(
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
        )
        found.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(description)
    return tuple(
        [
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(entries))
            for (kind, name, pattern), entries in found.items()
        ]
    )


def _filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )


class _Creation(TopicChange):
    """A CreateAcls under way."""

    def __init__(self, ctx: StepContext, token: Token, request: CreateAclsRequest) -> None:
        self._ctx = ctx
        self._token = token
        self._wanted = request.creations
        self._results: list[AclCreationResult] = []

    def decide(self) -> TopicsRecords:
        table = self._ctx.security.acls
        room = self._ctx.settings.emulator_max_acls - len(table)
        new: dict[Acl, None] = {}
        self._results = []
        for wanted in self._wanted:
            acl = _acl(wanted)
            problem = _problem(acl)
            if problem is not None:
                self._results.append(AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem))
            elif acl not in table.ids and acl not in new and len(new) >= room:
                self._results.append(_no_room(self._ctx.settings.emulator_max_acls))
            else:
                if acl not in table.ids:
                    new[acl] = None
                self._results.append(AclCreationResult(error_message=""))
        return tuple([creation_record(random_uuid(self._ctx.new_id), acl) for acl in new])

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            failed = AclCreationResult(error_code=error)
            results = [failed if each.error_code is ErrorCode.NONE else each for each in results]
        self._ctx.reply(self._token, CreateAclsResponse(results=tuple(results)))


def _acl(wanted: AclCreation) -> Acl:
    return Acl(
        wanted.resource_type,
        wanted.resource_name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )


def _no_room(most: int) -> AclCreationResult:
    message = f"there are {most:,} ACLs already, as many as emulator.max.acls allows"
    return AclCreationResult(error_code=ErrorCode.POLICY_VIOLATION, error_message=message)


def _problem(acl: Acl) -> str | None:
    """Why there cannot be such an ACL, or none."""
    if acl.resource_type == Resource.CLUSTER.code and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type not in _RESOURCES:
        return f"resource type {acl.resource_type}: expected one of {_listed(_RESOURCES)}"
    if acl.pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED}:
        return f"pattern type {acl.pattern_type}: expected 3 (literal) or 4 (prefixed)"
    if acl.operation not in _OPERATIONS:
        return f"operation {acl.operation}: expected one of {_listed(_OPERATIONS)}"
    if acl.permission_type not in {Permission.DENY, Permission.ALLOW}:
        return f"permission {acl.permission_type}: expected 2 (deny) or 3 (allow)"
    if ":" not in acl.principal:
        return f"principal {acl.principal[:100]!r}: expected TYPE:NAME, as User:alice"
    if max(map(len, (acl.resource_name, acl.principal, acl.host))) > LONGEST_TEXT:
        return f"a name, a principal or a host has more than {LONGEST_TEXT:,} characters"
    return host_problem(acl.host)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


class _Removal(TopicChange):
    """A DeleteAcls under way."""

    def __init__(self, ctx: StepContext, token: Token, request: DeleteAclsRequest) -> None:
        self._ctx = ctx
        self._token = token
        self._filters = tuple(map(_filter, request.filters))
        self._results: dict[AclFilter, DeleteAclsFilterResult] = {}

    def decide(self) -> TopicsRecords:
        table = self._ctx.security.acls
        filters = dict.fromkeys(self._filters)
        if len(filters) * len(table) > MOST_COMPARISONS:
            message = f"{len(filters):,} filters for {len(table):,} ACLs are too many: ask in several requests"
            refused = DeleteAclsFilterResult(error_code=ErrorCode.POLICY_VIOLATION, error_message=message)
            self._results = dict.fromkeys(filters, refused)
            return ()
        selected: dict[str, None] = {}
        self._results = {each: self._delete(each, table, selected) for each in filters}
        return tuple([removal_record(acl_id) for acl_id in selected])

    def _delete(self, wanted: AclFilter, table: AclTable, selected: dict[str, None]) -> DeleteAclsFilterResult:
        problem = _filter_problem(wanted)
        if problem is not None:
            return DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)
        matching = [acl for acl in table.ids if wanted.matches(acl)]
        selected.update(dict.fromkeys(table.ids[acl] for acl in matching))
        return DeleteAclsFilterResult(matching_acls=tuple([DeleteAclsMatchingAcl(**acl._asdict()) for acl in matching]))

    def ended(self, error: ErrorCode) -> None:
        results = tuple([self._results[each] for each in self._filters])
        if error is not ErrorCode.NONE:
            failed = DeleteAclsFilterResult(error_code=error)
            results = tuple([failed if each.error_code is ErrorCode.NONE else each for each in results])
        self._ctx.reply(self._token, DeleteAclsResponse(filter_results=results))


def _filter_problem(wanted: AclFilter) -> str | None:
    """Why a filter selects nothing, or none."""
    if wanted.resource_type not in _RESOURCES | {ANY} or wanted.pattern_type not in _PATTERNS:
        return "Unknown patternFilter."
    if wanted.operation not in _OPERATIONS | {ANY} or wanted.permission_type not in _PERMISSIONS:
        return "Unknown entryFilter."
    return None
