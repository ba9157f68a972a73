"""Actions of ``rejoin acls``, one function each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from rejoin.client.admin.admin import Admin
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.client.core.errors import CodedError
from rejoin.output import print_text
from rejoin.protocol.printable import printable
from rejoin.protocol.security.acl_bindings import (
    ANYTHING,
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
)

_COMMON: Final = frozenset({AclOperation.ALL})
OPERATIONS: Final = {
    AclResource.TOPIC: _COMMON
    | {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    },
    AclResource.GROUP: _COMMON
    | {
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    },
    AclResource.CLUSTER: _COMMON
    | {
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    },
    AclResource.TRANSACTIONAL_ID: _COMMON | {AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT},
    AclResource.DELEGATION_TOKEN: _COMMON | {AclOperation.DESCRIBE},
    AclResource.USER: _COMMON | {AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS},
}
"""The operations that the tool takes for each kind of resource. Kafka: AclEntry.supportedOperations."""

PRODUCING: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
PRODUCING_IN_TRANSACTIONS: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)
CONSUMING: Final = (AclOperation.READ, AclOperation.DESCRIBE)


class Pattern(NamedTuple):
    """Resources of one kind with one name or prefix; without a name all of them."""

    kind: AclResource
    name: str | None
    type: PatternType

    def __str__(self) -> str:
        name = printable(self.name or "")
        return f"ResourcePattern(resourceType={self.kind.name}, name={name}, patternType={self.type.name})"


Wanted: TypeAlias = Mapping[Pattern, Sequence[AclBinding]]


async def add(admin: Admin, options: argparse.Namespace) -> None:
    """``--add``."""
    for pattern, acls in _wanted(options).items():
        there = set(await _listed(admin, pattern))
        for acl in acls:
            if acl in there:
                print_text(f"Acl (pattern={pattern}, entry={_entry(acl)}) already exists.")
        new = [acl for acl in acls if acl not in there]
        if new:
            print_text(f"Adding ACLs for resource `{pattern}`: \n {_entries(new)}\n")
            (await admin.create_acls(new)).check()


async def remove(admin: Admin, options: argparse.Namespace) -> None:
    """``--remove``: without principals all ACLs on the resources."""
    for pattern, acls in _wanted(options).items():
        if not acls:
            if _confirmed(options, f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"):
                await _delete(admin, [_filter(pattern)])
        else:
            what = f"Are you sure you want to remove ACLs: \n {_entries(acls)}\n"
            if _confirmed(options, f"{what} from resource filter `{pattern}`? (y/n)"):
                await _delete(admin, [AclBindingFilter.of(acl) for acl in acls])


async def list_acls(admin: Admin, options: argparse.Namespace) -> None:
    """``--list``."""
    patterns = list(_patterns(options)) or [Pattern(AclResource.ANY, None, PatternType.ANY)]
    found: dict[AclBinding, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(await _listed(admin, pattern)))
    if not options.principal:
        _print_list(found)
    for principal in _principals(options.principal):
        print_text(f"ACLs for principal `{principal}`")
        _print_list(acl for acl in found if acl.principal == principal)


def _print_list(acls: Iterable[AclBinding]) -> None:
    by_pattern: dict[Pattern, list[AclBinding]] = {}
    for acl in sorted(acls):
        by_pattern.setdefault(Pattern(acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    for pattern in sorted(by_pattern):
        print_text(f"Current ACLs for resource `{pattern}`:\n{_entries(by_pattern[pattern])}\n")


def _entries(acls: Iterable[AclBinding]) -> str:
    return "\n".join(f"\t{_entry(acl)}" for acl in acls)


def _entry(acl: AclBinding) -> str:
    who = f"principal={printable(acl.principal)}, host={printable(acl.host)}"
    return f"({who}, operation={acl.operation.name}, permissionType={acl.permission.name})"


async def _listed(admin: Admin, pattern: Pattern) -> list[AclBinding]:
    return await admin.describe_acls(_filter(pattern))


def _filter(pattern: Pattern) -> AclBindingFilter:
    return AclBindingFilter(resource_type=pattern.kind, resource_name=pattern.name, pattern_type=pattern.type)


async def _delete(admin: Admin, filters: Sequence[AclBindingFilter]) -> None:
    for result in (await admin.delete_acls(filters)).values():
        if result.error is not None:
            raise result.error


def _confirmed(options: argparse.Namespace, question: str) -> bool:
    if options.force:
        return True
    print_text(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


# -- from the command line


def _wanted(options: argparse.Namespace) -> Wanted:
    """The ACLs that are meant, by resource; none for a resource whose ACLs are all meant. Raises UsageError."""
    patterns = _patterns(options)
    found: dict[Pattern, dict[AclBinding, None]] = {}

    def want(kind: AclResource, operations: Iterable[AclOperation]) -> None:
        for pattern in patterns:
            if pattern.kind is kind:
                acls = _acls(options, pattern, operations)
                found.setdefault(pattern, {}).update(dict.fromkeys(acls))

    if options.producer:
        want(AclResource.TOPIC, PRODUCING)
        want(AclResource.TRANSACTIONAL_ID, PRODUCING_IN_TRANSACTIONS)
        if options.idempotent:
            cluster = Pattern(AclResource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
            found[cluster] = dict.fromkeys(_acls(options, cluster, [AclOperation.IDEMPOTENT_WRITE]))
    if options.consumer:
        want(AclResource.TOPIC, CONSUMING)
        want(AclResource.GROUP, [AclOperation.READ])
    if not options.producer and not options.consumer:
        for kind in dict.fromkeys(pattern.kind for pattern in patterns):
            want(kind, _operations(options, kind))
    return {pattern: tuple(acls) for pattern, acls in found.items()}


def _patterns(options: argparse.Namespace) -> list[Pattern]:
    kind_of = PatternType[options.resource_pattern_type]
    found = [Pattern(AclResource.TOPIC, name.strip(), kind_of) for name in options.topic]
    # Kafka: the cluster's pattern is literal, whatever the option says.
    if options.cluster:
        found.append(Pattern(AclResource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    for kind, names in (
        (AclResource.GROUP, options.group),
        (AclResource.TRANSACTIONAL_ID, options.transactional_id),
        (AclResource.DELEGATION_TOKEN, options.delegation_token),
        (AclResource.USER, options.user_principal),
    ):
        found += [Pattern(kind, name.strip(), kind_of) for name in names]
    return list(dict.fromkeys(found))


def _acls(options: argparse.Namespace, pattern: Pattern, operations: Iterable[AclOperation]) -> list[AclBinding]:
    return [
        AclBinding(principal, operation, pattern.kind, pattern.name or "", permission, host, pattern.type)
        for permission, principals, hosts in (
            (Permission.ALLOW, options.allow_principal, options.allow_host),
            (Permission.DENY, options.deny_principal, options.deny_host),
        )
        for principal in _principals(principals)
        for operation in operations
        for host in (hosts or [ANYTHING])
    ]


def _principals(texts: Iterable[str]) -> list[str]:
    """Raises ToolRefusal for one without a type, in the words of Kafka's tool."""
    found = [text.strip() for text in texts]
    for text in found:
        if ":" not in text:
            raise ToolRefusal(f"expected a string in format principalType:principalName but got {text}")
    return found


def _operations(options: argparse.Namespace, kind: AclResource) -> list[AclOperation]:
    """The operations of ``--operation``. Raises UsageError where they are not those of the kind of resource."""
    # Kafka: AclCommand.validateOperation.
    by_word = {each.name.replace("_", "").lower(): each for each in AclOperation if each is not AclOperation.ANY}
    found = [by_word.get(text.strip().replace("_", "").lower()) for text in options.operation or ["All"]]
    operations: list[AclOperation] = [each for each in found if each is not None and each in OPERATIONS[kind]]
    if len(operations) != len(found):
        known = ", ".join(each.name for each in sorted(OPERATIONS[kind]))
        raise UsageError(f"ResourceType {kind.name} only supports operations [{known}]")
    return operations


def _refusal(problem: CodedError | ToolRefusal) -> str:
    prefix = f"org.apache.kafka.common.errors.{problem.java_name}: " if isinstance(problem, CodedError) else ""
    return f"Error while executing ACL command: {prefix}{problem}"


run_action: Final = runs({"--list": list_acls, "--add": add, "--remove": remove}, Admin, _refusal)
