"""Who may do what. Every principal may do everything, except for the denials in the settings.

Kafka: an authorizer with ``allow.everyone.if.no.acl.found`` and DENY rules. There are no ALLOW rules here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class Operation(Enum):
    """Operations that can be denied; the value is the bit in Kafka's authorized operations."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(StrEnum):
    """Kinds of resources that an operation can be denied on."""

    CLUSTER = "cluster"
    GROUP = "group"
    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional-id"


OPERATIONS = {
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    Resource.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
"""The operations that exist on each kind of resource."""

CLUSTER_NAME = "kafka-cluster"


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
        if kind not in set(Resource):
            raise ValueError(f"{kind!r} in {text!r} is none of {', '.join(Resource)}; {expected}")
        if parts[2] != "ALL" and parts[2] not in Operation.__members__:
            known = ", ".join(["ALL", *Operation.__members__])
            raise ValueError(f"{parts[2]!r} in {text!r} is none of {known}; {expected}")
        operation = None if parts[2] == "ALL" else Operation[parts[2]]
        return cls(f"{parts[0]}:{parts[1]}", operation, Resource(kind), name)

    def forbids(self, principal: str, operation: Operation, resource: Resource, name: str) -> bool:
        return (
            self.resource is resource
            and self.operation in (None, operation)
            and _matches(self.principal, principal)
            and _matches(self.name, name)
        )


def _matches(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


class Authorizer:
    """Asks the denials. Without any, every question is answered at once."""

    def __init__(self, denials: tuple[str, ...]) -> None:
        self._denials = tuple(Denial.parse(text) for text in denials)
        self.allows_everything = not self._denials

    def allows(self, principal: str, operation: Operation, resource: Resource, name: str) -> bool:
        return not self._denials or not any(
            denial.forbids(principal, operation, resource, name) for denial in self._denials
        )

    def authorized_operations(self, principal: str, resource: Resource, name: str) -> int:
        """Operations that the principal may do on a resource, as Kafka's bit field (KIP-430)."""
        return sum(
            1 << operation.value
            for operation in OPERATIONS[resource]
            if self.allows(principal, operation, resource, name)
        )
