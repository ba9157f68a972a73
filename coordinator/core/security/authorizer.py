"""Who may do what: super users, ACLs, and the denials of the settings before both.

Without ``authorizer.class.name`` there are only the denials, and everything else is allowed. ACLs do not concern the
operator, nor other nodes of the same process; denials do.

Kafka: StandardAuthorizerData.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.security.acls import Acl, AclTable, Decided
from rejoin.coordinator.core.security.client_principals import ClientPrincipals
from rejoin.coordinator.core.security.denials import Denial
from rejoin.coordinator.core.security.hosts import host_matches
from rejoin.coordinator.core.security.resources import ANYTHING, OPERATIONS, Operation, Resource
from rejoin.protocol.security.acl_bindings import PatternType

IMPLYING: Final = {
    Operation.DESCRIBE.code: frozenset(
        each.code for each in (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS.code: frozenset({Operation.DESCRIBE_CONFIGS.code, Operation.ALTER_CONFIGS.code}),
}
"""Operations whose permission includes another one. A denial includes nothing."""

EVERYONE: Final = "User:*"
MOST_DECISIONS: Final = 4_096
LONGEST_KEPT: Final = 512
"""Bounds of the cache of decisions: how many, and the characters of each key."""


class Authorizer:
    """Decides whether an operation is allowed. Raises ``ValueError`` when a denial in the settings cannot be read."""

    def __init__(self, settings: Settings, acls: AclTable) -> None:
        self._denials = tuple(Denial.parse(text) for text in settings.emulator_deny)
        self._acls = acls
        self.has_acls = bool(settings.authorizer_class_name)
        """Whether ACLs are kept and enforced."""
        self.allows_everything = not self._denials and not self.has_acls
        self._super_users = frozenset(filter(None, map(str.strip, settings.super_users.split(";"))))
        text = settings.emulator_principals
        self._principals = ClientPrincipals.of_setting(text) if text else None
        self._without_acl = settings.allow_everyone_if_no_acl_found
        self._decisions = acls.decisions

    def allows(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether a client may do this on one resource."""
        if self.allows_everything:
            return True
        if context.by_operator:
            return not self._is_denied(context.principal, operation, resource, name)
        principal = context.principal if self._principals is None else self._principals.of(context)
        key = (principal, context.client_host, name, operation, resource)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(principal, _address(context), operation, resource, name)
            self._keep(key, decision)
        return decision

    def principal(self, context: Context) -> str:
        """The principal for which a request is decided."""
        return context.principal if self._principals is None else self._principals.of(context)

    def _keep(self, key: Decided, decision: bool) -> None:
        if len(key[0]) + len(key[1]) + len(key[2]) > LONGEST_KEPT:
            return
        if len(self._decisions) >= MOST_DECISIONS:
            self._decisions.clear()
        self._decisions[key] = decision

    def _is_denied(self, principal: str, operation: Operation, resource: Resource, name: str) -> bool:
        return any(denial.forbids(principal, operation, resource, name) for denial in self._denials)

    def _decide(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        if self._is_denied(principal, operation, resource, name):
            return False
        if not self.has_acls or principal in self._super_users:
            return True
        code = operation.code
        has_acl = is_allowed = False
        for acl in self._acls.about(resource.code, name):
            has_acl = True
            if _is_about(acl, principal, host) and _covers(acl, code):
                if not acl.allows:
                    return False
                is_allowed = True
        return is_allowed or (not has_acl and self._without_acl)

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        """Whether a client may do this on at least one resource of a kind. Kafka: authorizeByResourceType."""
        if self.allows_everything or context.by_operator:
            return True
        principal, host = self.principal(context), _address(context)
        if any(denial.forbids_all(principal, operation, resource) for denial in self._denials):
            return False
        # Kafka: a name that stands for one on which there is no ACL: super users, and everything by default.
        if self.allows(context, operation, resource, "hardcode"):
            return True
        exactly = {operation.code, Operation.ALL.code}
        acls = [
            acl
            for acl in self._acls.of_type(resource.code)
            if acl.operation in exactly and _is_about(acl, principal, host)
        ]
        denied = {(acl.pattern_type, acl.resource_name) for acl in acls if not acl.allows}
        if (PatternType.LITERAL, ANYTHING) in denied:
            return False
        return any(acl.allows and not _is_dominated(acl, denied) for acl in acls)

    def authorized_operations(self, context: Context, resource: Resource, name: str) -> int:
        """Operations that the client may do on a resource, as Kafka's bit field (KIP-430)."""
        return sum(
            1 << operation.code for operation in OPERATIONS[resource] if self.allows(context, operation, resource, name)
        )


def _address(context: Context) -> str:
    """The client's address, which is printed behind a slash."""
    return context.client_host.rpartition("/")[2]


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in {principal, EVERYONE} and host_matches(acl.host, host)


def _covers(acl: Acl, operation: int) -> bool:
    if acl.operation in {operation, Operation.ALL.code}:
        return True
    return acl.allows and operation in IMPLYING and acl.operation in IMPLYING[operation]


def _is_dominated(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether everything that an ACL allows is denied by another."""
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        if name == ANYTHING:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
