"""Actions of an administrator on ACLs and quotas: clients that are refused, or slowed down, from an instant on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.protocol.messages.security.acls import CreateAclsRequest, DeleteAclsRequest
from rejoin.protocol.messages.security.client_quotas import AlterClientQuotasRequest
from rejoin.protocol.registry import ALTER_CLIENT_QUOTAS, CREATE_ACLS, DELETE_ACLS
from rejoin.protocol.security.acl_bindings import AclBinding, AclBindingFilter
from rejoin.protocol.security.quota_limits import QuotaLimits
from rejoin.simulation.scenario.actions import ChangeAcls, ChangeQuotas

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation


def change_acls(simulation: Simulation, what: ChangeAcls) -> None:
    """Create and delete ACLs on every node."""
    if what.create:
        simulation.announce(f"an administrator creates {', '.join(what.create)}")
        creations = tuple(AclBinding.parse(text).creation() for text in what.create)
        simulation.cluster.change_access(CreateAclsRequest(creations=creations), CREATE_ACLS.max_version)
    if what.delete:
        simulation.announce(f"an administrator deletes {', '.join(what.delete)}")
        filters = tuple(AclBindingFilter.of(AclBinding.parse(text)).deletion() for text in what.delete)
        simulation.cluster.change_access(DeleteAclsRequest(filters=filters), DELETE_ACLS.max_version)


def change_quotas(simulation: Simulation, what: ChangeQuotas) -> None:
    """Set and remove limits on every node."""
    simulation.announce(f"an administrator sets {', '.join(what.limits)}")
    entries = tuple(QuotaLimits.parse(text).alteration() for text in what.limits)
    request = AlterClientQuotasRequest(entries=entries, validate_only=False)
    simulation.cluster.change_access(request, ALTER_CLIENT_QUOTAS.max_version)
