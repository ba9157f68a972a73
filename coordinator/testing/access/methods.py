"""Principals, ACLs and quotas of a test."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.coordinator.control.access.actions import AclChanges, PrincipalChange, QuotaChanges
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class AccessMethods(ControlledCoordinator):
    """The methods for principals, ACLs and quotas."""

    async def set_principal(self, client_id: str, principal: str | None) -> None:
        """Give a client that does not log in a principal; None: that of the settings again."""

        def set_principal(control: Control) -> None:
            control.access.give_principal(PrincipalChange(client=client_id, principal=principal))

        await self._ask(set_principal)

    async def set_acls(self, create: Sequence[str] = (), delete: Sequence[str] = ()) -> list[str]:
        """Create and delete ACLs, as User:alice:READ:topic=orders; returns all that there are then."""

        async def set_acls(control: Control) -> list[str]:
            return await control.access.change_acls(AclChanges(create=tuple(create), delete=tuple(delete)))

        return await self.do(set_acls)

    async def set_quotas(self, quotas: Sequence[str]) -> list[str]:
        """Set and remove quotas, as user=alice producer_byte_rate=1000; returns all that there are then."""

        async def set_quotas(control: Control) -> list[str]:
            return await control.access.set_quotas(QuotaChanges(quotas=tuple(quotas)))

        return await self.do(set_quotas)
