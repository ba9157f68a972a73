"""Actions about principals, ACLs and quotas."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

from rejoin.coordinator.control.access.principals import GivenPrincipals
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import NotPossible
from rejoin.coordinator.control.fault_injection.bodies import Body, Texts
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsResponse,
)
from rejoin.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from rejoin.protocol.registry import (
    ALTER_CLIENT_QUOTAS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
)
from rejoin.protocol.security.acl_bindings import AclBinding, AclBindingFilter
from rejoin.protocol.security.quota_limits import QuotaHolder, QuotaLimits

Ask = Callable[[Request, int], Coroutine[Any, Any, Response]]


def _typed(principal: str | None) -> str | None:
    if principal is not None and ":" not in principal:
        raise ValueError("expected TYPE:NAME, as User:alice")
    return principal


def _acl_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(AclBinding.parse(text)) for text in texts)


def _quota_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(QuotaLimits.parse(text)) for text in texts)


class PrincipalChange(Body):
    """A principal for a client that does not log in."""

    client: str = Field(description="a client id; with a star at its end, all that begin like this")
    principal: Annotated[str | None, AfterValidator(_typed)] = Field(
        description="its principal, as User:alice; null: that of the settings again"
    )


class AclChanges(Body):
    """ACLs to create and to delete, as ``User:alice:READ:topic=orders-*`` or ``deny User:eve:ALL:group=*``."""

    create: Annotated[Texts, AfterValidator(_acl_texts)] = Field(default=(), description="ACLs to create")
    delete: Annotated[Texts, AfterValidator(_acl_texts)] = Field(default=(), description="ACLs to delete")


class QuotaChanges(Body):
    """Limits to set or to remove, as ``user=alice,client-id=app producer_byte_rate=1000``."""

    quotas: Annotated[Texts, AfterValidator(_quota_texts)] = Field(
        description="entities with their limits; none in place of a number removes a limit, <default> in place of a "
        "name is the default of its type"
    )


class AccessActions:
    """Sets and lists principals, ACLs and quotas."""

    def __init__(self, principals: GivenPrincipals, clock: VirtualClock, ask: Ask) -> None:
        self._principals = principals
        self._clock = clock
        self._ask = ask

    # --- principals

    def principals(self) -> dict[str, str]:
        """The principals that were given, by client id."""
        return dict(self._principals.by_client)

    def give_principal(self, change: PrincipalChange) -> dict[str, str]:
        """Give a client a principal, or take it away; all that were given."""
        self._principals.give(change.client, change.principal)
        return self.principals()

    def clear_principals(self) -> dict[str, str]:
        """Take away the principals that were given; none are left."""
        self._principals.clear()
        return self.principals()

    # --- ACLs

    async def acls(self) -> list[str]:
        """All ACLs as texts, in order; none without an authorizer."""
        answer = cast(
            DescribeAclsResponse, await self._ask(AclBindingFilter().description(), DESCRIBE_ACLS.max_version)
        )
        return sorted(str(acl) for acl in AclBinding.described(answer.resources))

    async def change_acls(self, changes: AclChanges) -> list[str]:
        """Create and delete ACLs; all that there are then. Raises NotPossible for what is refused."""
        self._clock.catch_up()
        created = tuple(AclBinding.parse(text).creation() for text in changes.create)
        deleted = tuple(AclBindingFilter.of(AclBinding.parse(text)).deletion() for text in changes.delete)
        if created:
            made = cast(
                CreateAclsResponse, await self._ask(CreateAclsRequest(creations=created), CREATE_ACLS.max_version)
            )
            _check((each.error_code, each.error_message) for each in made.results)
        if deleted:
            removed = cast(
                DeleteAclsResponse, await self._ask(DeleteAclsRequest(filters=deleted), DELETE_ACLS.max_version)
            )
            _check((each.error_code, each.error_message) for each in removed.filter_results)
        return await self.acls()

    # --- quotas

    async def quotas(self) -> list[str]:
        """The limits of all entities as texts, in order."""
        request = DescribeClientQuotasRequest(components=(), strict=False)
        answer = await self._ask(request, DESCRIBE_CLIENT_QUOTAS.max_version)
        return sorted(
            str(QuotaLimits(QuotaHolder.of(entry.entity), {value.key: value.value for value in entry.values}))
            for entry in cast(DescribeClientQuotasResponse, answer).entries or ()
        )

    async def set_quotas(self, changes: QuotaChanges) -> list[str]:
        """Set and remove limits; all that there are then. Raises NotPossible for what is refused."""
        self._clock.catch_up()
        entries = tuple(QuotaLimits.parse(text).alteration() for text in changes.quotas)
        request = AlterClientQuotasRequest(entries=entries, validate_only=False)
        answer = cast(AlterClientQuotasResponse, await self._ask(request, ALTER_CLIENT_QUOTAS.max_version))
        _check((each.error_code, each.error_message) for each in answer.entries)
        return await self.quotas()


def _check(results: Iterable[tuple[ErrorCode, str | None]]) -> None:
    for error, message in results:
        if error is ErrorCode.SECURITY_DISABLED:
            detail = "this coordinator has no authorizer; start it with authorizer.class.name, or with acls= in a test"
            raise NotPossible("no-authorizer", detail)
        if error is not ErrorCode.NONE:
            raise NotPossible("refused", f"{error.name}: {message}")
