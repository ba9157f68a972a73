"""ACLs in transcripts: what an administrator created and deleted, as commands."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from rejoin.protocol.security.acl_bindings import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
)
from rejoin.transcript.grammar.words import BadWord

GONE = "gone"


def acl_request(words: Sequence[str]) -> Request:
    """The request of an ``acl`` command. Raises BadWord."""
    try:
        acl = AclBinding.parse(" ".join(words[words[:1] == [GONE] :]))
    except ValueError as problem:
        raise BadWord(str(problem)) from None
    if words[:1] == [GONE]:
        return DeleteAclsRequest(filters=(AclBindingFilter.of(acl).deletion(),))
    return CreateAclsRequest(creations=(acl.creation(),))


def acl_commands(request: Request, response: Response | None) -> list[str]:
    """The commands for what a request has done to ACLs; none where one of them has no words, or nothing was done."""
    created: list[AclBinding] = []
    deleted: list[AclBinding] = []
    if isinstance(request, CreateAclsRequest) and isinstance(response, CreateAclsResponse):
        created = [
            AclBinding(
                each.principal,
                AclOperation(each.operation),
                AclResource(each.resource_type),
                each.resource_name,
                Permission(each.permission_type),
                each.host,
                PatternType(each.resource_pattern_type),
            )
            for each, result in zip(request.creations, response.results, strict=True)
            if result.error_code is ErrorCode.NONE
        ]
    elif isinstance(response, DeleteAclsResponse):
        matching = [acl for result in response.filter_results for acl in result.matching_acls]
        deleted = [AclBinding.deleted(acl) for acl in matching if acl.error_code is ErrorCode.NONE]
    if not all(_has_words(acl) for acl in (*created, *deleted)):
        return []
    return [f"acl {acl}" for acl in created] + [f"acl {GONE} {acl}" for acl in deleted]


def _has_words(acl: AclBinding) -> bool:
    text = str(acl)
    try:
        return AclBinding.parse(text) == acl and text.split() == text.split(" ")
    except ValueError:
        return False
