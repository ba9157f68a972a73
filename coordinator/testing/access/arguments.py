"""Principals, ACLs and quotas with which the coordinator of a test starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.security.acl_bindings import AclBinding
from rejoin.protocol.security.quota_limits import QuotaLimits


def read_acls(given: Sequence[str | AclBinding]) -> tuple[AclBinding, ...]:
    """The ACLs of an argument. Raises ValueError."""
    return tuple(AclBinding.parse(each) if isinstance(each, str) else each for each in _listed("acls", given))


def read_quotas(given: Sequence[str | QuotaLimits]) -> tuple[QuotaLimits, ...]:
    """The quotas of an argument. Raises ValueError."""
    return tuple(QuotaLimits.parse(each) if isinstance(each, str) else each for each in _listed("quotas", given))


def _listed(name: str, given: Any) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValueError(f"{name}: expected a list of texts, not {given!r}")
    return given


def with_access(settings: Settings, principals: Mapping[str, str] | None, acls: Sequence[str | AclBinding]) -> Settings:
    """Settings with these principals beside their own, and with the authorizer where there are ACLs."""
    changed: dict[str, str] = {}
    if acls and not settings.authorizer_class_name:
        changed["authorizer_class_name"] = STANDARD_AUTHORIZER
    if principals is not None:
        wrong = not isinstance(principals, Mapping) or any(":" not in str(each) for each in principals.values())
        if wrong or any(mark in client for client in principals for mark in "=;"):
            raise ValueError(
                f"principals: expected principals by client id, as {{'app*': 'User:alice'}}, not {principals!r}"
            )
        pairs = [settings.emulator_principals, *(f"{client}={name}" for client, name in principals.items())]
        changed["emulator_principals"] = ";".join(filter(None, pairs))
    return settings.model_copy(update=changed) if changed else settings
