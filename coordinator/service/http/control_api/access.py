"""Principals, ACLs and quotas."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.access.actions import AclChanges, PrincipalChange, QuotaChanges
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.service.http.control_api.answers import AclsAnswer, PrincipalsAnswer, QuotasAnswer
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, NoFields
from rejoin.coordinator.service.http.server import CONTROL


async def _acls(control: Control, _: NoFields, __: str) -> dict[str, Any]:
    return {"acls": await control.access.acls()}


async def _change_acls(control: Control, changes: AclChanges, _: str) -> dict[str, Any]:
    return {"acls": await control.access.change_acls(changes)}


async def _quotas(control: Control, _: NoFields, __: str) -> dict[str, Any]:
    return {"quotas": await control.access.quotas()}


async def _set_quotas(control: Control, changes: QuotaChanges, _: str) -> dict[str, Any]:
    return {"quotas": await control.access.set_quotas(changes)}


ACCESS: Final = (
    ControlOperation(
        "GET",
        CONTROL + "/principals",
        "the principals that clients were given, by client id",
        NoFields,
        PrincipalsAnswer,
        lambda control, _, __: {"principals": control.access.principals()},
    ),
    ControlOperation(
        "POST",
        CONTROL + "/principals",
        "give clients that do not log in a principal",
        PrincipalChange,
        PrincipalsAnswer,
        lambda control, change, _: {"principals": control.access.give_principal(change)},
    ),
    ControlOperation(
        "DELETE",
        CONTROL + "/principals",
        "take away all principals that were given",
        NoFields,
        PrincipalsAnswer,
        lambda control, _, __: {"principals": control.access.clear_principals()},
    ),
    ControlOperation("GET", CONTROL + "/acls", "all ACLs", NoFields, AclsAnswer, _acls),
    ControlOperation("POST", CONTROL + "/acls", "create and delete ACLs", AclChanges, AclsAnswer, _change_acls),
    ControlOperation("GET", CONTROL + "/quotas", "all quotas", NoFields, QuotasAnswer, _quotas),
    ControlOperation("POST", CONTROL + "/quotas", "set and remove quotas", QuotaChanges, QuotasAnswer, _set_quotas),
)
