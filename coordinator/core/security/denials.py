"""Denials of the setting ``emulator.deny``: they hold without an authorizer, and before every ACL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.security.resources import Operation, Resource

_KINDS: Final = {str(each): each for each in Resource}


@dataclass(frozen=True, slots=True)
class Denial:
    """One rule: this principal must not do this on resources of this name; ``*`` at the end of a name is a prefix."""

    principal: str
    operation: Operation | None
    resource: Resource
    name: str

    @classmethod
    def parse(cls, text: str) -> Denial:
        """Read ``User:NAME:OPERATION:KIND=NAME``, as in ``User:*:READ:group=secret-*``. Raises ``ValueError``."""
        expected = "expected User:NAME:OPERATION:KIND=NAME, as in User:*:READ:group=secret-*"
        parts = text.strip().split(":", 3)
        if len(parts) != 4 or "=" not in parts[3]:
            raise ValueError(f"cannot read the denial {text!r}; {expected}")
        kind, name = parts[3].split("=", 1)
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} in {text!r} is none of {', '.join(Resource)}; {expected}")
        if parts[2] not in Operation.__members__:
            known = ", ".join(Operation.__members__)
            raise ValueError(f"{parts[2]!r} in {text!r} is none of {known}; {expected}")
        operation = Operation[parts[2]]
        return cls(f"{parts[0]}:{parts[1]}", None if operation is Operation.ALL else operation, _KINDS[kind], name)

    def forbids(self, principal: str, operation: Operation, resource: Resource, name: str) -> bool:
        return (
            self.resource is resource
            and self.operation in (None, operation)
            and _matches(self.principal, principal)
            and _matches(self.name, name)
        )

    def forbids_all(self, principal: str, operation: Operation, resource: Resource) -> bool:
        """Whether the operation is denied on every resource of a kind."""
        return self.forbids(principal, operation, resource, "") and self.name == "*"


def _matches(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
