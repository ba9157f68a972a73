"""Operations, and the kinds of resources that they are done on, with Kafka's numbers for both.

Kafka: AclOperation, ResourceType, AclEntry.supportedOperations.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final, Self

from rejoin.protocol.security.acl_bindings import ANYTHING as ANYTHING
from rejoin.protocol.security.acl_bindings import CLUSTER_NAME as CLUSTER_NAME


class Operation(Enum):
    """Operations that can be allowed or denied; the value is the bit in Kafka's authorized operations."""

    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    code: int

    __hash__ = object.__hash__  # an Enum's own is Python, and decisions are looked up by operation

    def __init__(self, code: int) -> None:
        self.code = code  # an attribute of its own, since reading ``value`` takes ten times as long


class Resource(StrEnum):
    """Kinds of resources that an operation can be allowed or denied on; ``code`` is Kafka's number."""

    TOPIC = ("topic", 2)
    GROUP = ("group", 3)
    CLUSTER = ("cluster", 4)
    TRANSACTIONAL_ID = ("transactional-id", 5)
    DELEGATION_TOKEN = ("delegation-token", 6)
    USER = ("user", 7)

    code: int

    __hash__ = str.__hash__

    def __new__(cls, text: str, code: int) -> Self:
        member = str.__new__(cls, text)
        member._value_ = text
        member.code = code
        return member


OPERATIONS: Final = {
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
    Resource.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    Resource.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Resource.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that exist on each kind of resource."""
