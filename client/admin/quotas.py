"""Client quotas from outside: list, set and remove limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.client.admin.asking import AdminConnection, Outcomes
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilterComponent,
)
from rejoin.protocol.security.quota_limits import QuotaHolder, QuotaLimits

EVERYONE: Final = QuotaHolder()
_EXACT, _DEFAULT, _ANY = range(3)


class QuotaCalls(AdminConnection):
    """The calls of an admin client about quotas."""

    async def describe_client_quotas(
        self, entity: QuotaHolder = EVERYONE, any_of: Iterable[str] = (), *, strict: bool = False
    ) -> dict[QuotaHolder, dict[str, float]]:
        """Limits by entity: of those that have the names of ``entity``, and some name for each type of ``any_of``.

        Types are ``user``, ``client-id`` and ``ip``. With ``strict``, entities that have other types, too, are left
        out. Raises CodedError.
        """
        components = [
            QuotaFilterComponent(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in entity.parts().items()
        ]
        components += [QuotaFilterComponent(entity_type=kind, match_type=_ANY, match=None) for kind in any_of]
        request = DescribeClientQuotasRequest(components=tuple(components), strict=strict)
        response = await self.ask(request, DescribeClientQuotasResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code, response.error_message or "")
        return {
            QuotaHolder.of(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or ()
        }

    async def alter_client_quotas(
        self, changes: Iterable[QuotaLimits], *, validate_only: bool = False
    ) -> Outcomes[QuotaHolder]:
        """Set and remove limits; the outcome of each entity. With ``validate_only`` nothing is changed."""
        request = AlterClientQuotasRequest(
            entries=tuple(change.alteration() for change in changes), validate_only=validate_only
        )
        response = await self.ask(request, AlterClientQuotasResponse)
        return Outcomes.of(
            {QuotaHolder.of(each.entity): (each.error_code, each.error_message) for each in response.entries}
        )
