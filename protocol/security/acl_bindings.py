"""ACLs as an administrator names them, with Kafka's words and numbers.

Kafka: AclBinding, AclBindingFilter, AclOperation, ResourceType, PatternType, AclPermissionType.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple, Self

from rejoin.protocol.messages.security.acls import (
    AclCreation,
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DescribeAclsRequest,
    DescribeAclsResource,
)

CLUSTER_NAME: Final = "kafka-cluster"
ANYTHING: Final = "*"
"""In an ACL: every name of a resource, every host, and as ``User:*`` every principal."""


class PatternType(IntEnum):
    """Comparison of a resource's name; only filters have ``ANY`` and ``MATCH``."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Effect of an ACL; only filters have ``ANY``."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class AclResource(IntEnum):
    """Kind of resource; only filters have ``ANY``."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @property
    def word(self) -> str:
        """The kind in texts of Rejoin, such as ``transactional-id``."""
        return self.name.lower().replace("_", "-")


class AclOperation(IntEnum):
    """Operation that an ACL allows or denies; only filters have ``ANY``."""

    ANY = 1
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


_EXPECTED: Final = "expected [deny ]User:NAME:OPERATION:KIND=NAME, as in User:alice:READ:topic=orders-*"
_KINDS: Final = {each.word: each for each in AclResource if each is not AclResource.ANY}


class AclBinding(NamedTuple):
    """An ACL: a principal that may, or may not, do something on resources of one name or one prefix."""

    principal: str
    operation: AclOperation
    resource_type: AclResource
    resource_name: str
    permission: Permission = Permission.ALLOW
    host: str = ANYTHING
    pattern_type: PatternType = PatternType.LITERAL

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``User:NAME:OPERATION:KIND=NAME``, with ``deny`` in front for a denial. Raises ValueError.

        A name that ends with a star is a prefix; a star alone is every name.
        """
        denies, _, rest = text.strip().rpartition(" ")
        parts = rest.split(":", 3)
        if denies.strip() not in {"", "deny"} or len(parts) != 4:
            raise ValueError(f"cannot read the ACL {text!r}; {_EXPECTED}")
        kind, equals, name = parts[3].partition("=")
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} in {text!r} is none of {', '.join(_KINDS)}; {_EXPECTED}")
        operations = [each.name for each in AclOperation if each is not AclOperation.ANY]
        if parts[2] not in operations:
            raise ValueError(f"{parts[2]!r} in {text!r} is none of {', '.join(operations)}; {_EXPECTED}")
        if kind == AclResource.CLUSTER.word and not equals:
            name = CLUSTER_NAME
        is_prefix = name.endswith(ANYTHING) and name != ANYTHING
        return cls(
            f"{parts[0]}:{parts[1]}",
            AclOperation[parts[2]],
            _KINDS[kind],
            name.removesuffix(ANYTHING) if is_prefix else name,
            Permission.DENY if denies else Permission.ALLOW,
            pattern_type=PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        )

    def __str__(self) -> str:
        """The text that ``parse`` reads; it leaves out the host."""
        deny = "deny " if self.permission is Permission.DENY else ""
        star = ANYTHING if self.pattern_type is PatternType.PREFIXED else ""
        return f"{deny}{self.principal}:{self.operation.name}:{self.resource_type.word}={self.resource_name}{star}"

    def creation(self) -> AclCreation:
        """The entry of a CreateAcls."""
        return AclCreation(
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            resource_pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )

    @classmethod
    def described(cls, resources: Iterable[DescribeAclsResource]) -> list[Self]:
        """The ACLs that a DescribeAcls lists."""
        return [
            cls(
                acl.principal,
                AclOperation(acl.operation),
                AclResource(resource.resource_type),
                resource.resource_name,
                Permission(acl.permission_type),
                acl.host,
                PatternType(resource.pattern_type),
            )
            for resource in resources
            for acl in resource.acls
        ]

    @classmethod
    def deleted(cls, acl: DeleteAclsMatchingAcl) -> Self:
        """The ACL that a DeleteAcls selected."""
        return cls(
            acl.principal,
            AclOperation(acl.operation),
            AclResource(acl.resource_type),
            acl.resource_name,
            Permission(acl.permission_type),
            acl.host,
            PatternType(acl.pattern_type),
        )


class AclBindingFilter(NamedTuple):
    """Selects ACLs. Fields that are not given select everything."""

    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    resource_type: AclResource = AclResource.ANY
    resource_name: str | None = None
    permission: Permission = Permission.ANY
    host: str | None = None
    pattern_type: PatternType = PatternType.ANY

    @classmethod
    def of(cls, acl: AclBinding) -> Self:
        """The filter that selects this ACL alone."""
        return cls(*acl)

    def description(self) -> DescribeAclsRequest:
        """The request that lists what this filter selects."""
        return DescribeAclsRequest(
            resource_type_filter=self.resource_type,
            resource_name_filter=self.resource_name,
            pattern_type_filter=self.pattern_type,
            principal_filter=self.principal,
            host_filter=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )

    def deletion(self) -> DeleteAclsFilter:
        """The entry of a DeleteAcls."""
        return DeleteAclsFilter(
            resource_type_filter=self.resource_type,
            resource_name_filter=self.resource_name,
            pattern_type_filter=self.pattern_type,
            principal_filter=self.principal,
            host_filter=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )
