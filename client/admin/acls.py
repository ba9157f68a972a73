"""ACLs from outside: create, list and delete them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rejoin.client.admin.asking import AdminConnection, Outcomes, coded
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsResponse,
)
from rejoin.protocol.security.acl_bindings import (
    AclBinding,
    AclBindingFilter,
)

EVERY_ACL: Final = AclBindingFilter()


class DeletedAcls(NamedTuple):
    """The ACLs that one filter selected, which are deleted, or the error of the filter."""

    acls: tuple[AclBinding, ...]
    error: CodedError | None


class AclCalls(AdminConnection):
    """The calls of an admin client about ACLs."""

    async def create_acls(self, acls: Iterable[AclBinding]) -> Outcomes[AclBinding]:
        """Create ACLs; the outcome of each. One that exists already is no error."""
        wanted = tuple(dict.fromkeys(acls))
        request = CreateAclsRequest(creations=tuple(acl.creation() for acl in wanted))
        results = (await self.ask(request, CreateAclsResponse)).results
        pairs = zip(wanted, results, strict=True)
        return Outcomes.of({acl: (result.error_code, result.error_message) for acl, result in pairs})

    async def describe_acls(self, wanted: AclBindingFilter = EVERY_ACL) -> list[AclBinding]:
        """The ACLs that a filter selects. Raises CodedError, such as SECURITY_DISABLED."""
        response = await self.ask(wanted.description(), DescribeAclsResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code, response.error_message or "")
        return AclBinding.described(response.resources)

    async def delete_acls(self, filters: Iterable[AclBindingFilter]) -> dict[AclBindingFilter, DeletedAcls]:
        """Delete the ACLs that one of the filters selects; what became of each filter."""
        wanted = tuple(dict.fromkeys(filters))
        request = DeleteAclsRequest(filters=tuple(each.deletion() for each in wanted))
        results = (await self.ask(request, DeleteAclsResponse)).filter_results
        return {
            each: DeletedAcls(
                tuple(AclBinding.deleted(acl) for acl in result.matching_acls),
                coded(result.error_code, result.error_message),
            )
            for each, result in zip(wanted, results, strict=True)
        }
