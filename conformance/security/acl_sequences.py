"""Sequences of changes of ACLs, and of requests of several principals: a table for each API, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, TypeAlias

from conformance.player.random_play import seeded
from conformance.security.acl_probes import NAMES, Probe, every_acl, metadata, probes
from rejoin.protocol.errors import ErrorCode

ADMIN: Final = "admin"
PRINCIPALS: Final = ("alice", "bob", "carol", "dave", "erin")
TOPICS: Final = ("pay", "pay-in")
SEQUENCES: Final = 40
STEPS: Final = 24

Step: TypeAlias = tuple[str, Probe]
"""Who asks, and what."""

_RESOURCES: Final = {2: (*NAMES, "*", "p"), 3: (*NAMES, "*", "p"), 4: ("kafka-cluster",), 5: (*NAMES, "*", "p")}
_OPERATIONS: Final = {
    2: (2, 3, 4, 5, 6, 7, 8, 10, 11),
    3: (2, 3, 6, 8, 10, 11),
    4: (2, 5, 7, 8, 9, 10, 11, 12),
    5: (2, 4, 8),
}
_HOSTS: Final = ("*", "*", "127.0.0.1", "10.1.1.1", "127.0.0.0/8", "10.0.0.0/8")
_COMPARED: Final = frozenset(
    {
        *("name", "groupId", "key", "topic", "topicName", "transactionalId", "transactionalIds", "resourceName"),
        *("authorizedOperations", "topicAuthorizedOperations", "clusterAuthorizedOperations"),
        *("partition", "partitionIndex", "resourceType", "patternType", "principal", "host", "operation"),
        "permissionType",
    }
)


def creation(**changed: Any) -> dict[str, Any]:
    """An entry of CreateAcls."""
    return {
        "resourceType": 2,
        "resourceName": "pay",
        "resourcePatternType": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
        **changed,
    }


def create(*entries: dict[str, Any], version: int = 3) -> Probe:
    """A CreateAcls."""
    return Probe("CreateAcls", version, {"creations": list(entries)})


def delete(*filters: dict[str, Any], version: int = 3) -> Probe:
    """A DeleteAcls."""
    return Probe("DeleteAcls", version, {"filters": list(filters)})


CLEAR: Final[Step] = (ADMIN, delete(every_acl()))


def sequences() -> dict[str, list[Step]]:
    """All sequences by name; each begins without ACLs."""
    found = {"refused": [("alice", probe) for probe in probes("pay")], "wrong": list(_wrong())}
    for kind, operations in _OPERATIONS.items():
        for operation in operations:
            name = "kafka-cluster" if kind == 4 else "pay"
            entry = creation(resourceType=kind, resourceName=name, operation=operation)
            found[f"allowed-{kind}-{operation}"] = [
                (ADMIN, create(entry)),
                *(("alice", probe) for probe in probes("pay")),
            ]
    everything = [
        creation(resourceType=kind, resourceName="kafka-cluster" if kind == 4 else "*", operation=2)
        for kind in _OPERATIONS
    ]
    found["everything"] = [
        (ADMIN, create(*everything)),
        *(("alice", probe) for name in NAMES for probe in probes(name)),
    ]
    found["automatic"] = list(_automatic())
    return found | {f"random-{seed}": list(_random(seeded(seed))) for seed in range(SEQUENCES)}


def _wrong() -> Iterator[Step]:
    """Requests about ACLs that have errors, in every version."""
    changes: tuple[dict[str, Any], ...] = (
        {"resourceName": ""},
        {"resourceType": 4},
        {"principal": "alice"},
        {"host": ""},
        {"host": "10.0.0.0/33"},
        {"host": "10.0.0/8"},
        {"host": "fe80::/129"},
        {"host": "fe80::/10"},
        {"host": "nowhere"},
    )
    for version in (1, 2, 3):
        for changed in changes:
            yield ADMIN, create(creation(**changed), creation(), creation(), version=version)
        yield "alice", create(creation(), creation(), version=version)
        yield "alice", delete(every_acl(), every_acl(), version=version)
        yield "alice", Probe("DescribeAcls", version, every_acl())
        for pattern in (1, 2, 3, 4):
            for name in (None, "pay", "*", "pay-in"):
                wanted = every_acl(patternTypeFilter=pattern, resourceNameFilter=name, resourceTypeFilter=2)
                yield ADMIN, Probe("DescribeAcls", version, wanted)
        yield ADMIN, delete(every_acl(hostFilter="nowhere"), every_acl(operation=3), version=version)
        yield ADMIN, create(creation(resourcePatternType=4, resourceName="p"), creation(resourceName="*"))
        yield ADMIN, Probe("DescribeAcls", version, every_acl(principalFilter="User:alice", hostFilter="*"))


def _automatic() -> Iterator[Step]:
    """Topics that Metadata makes: by a right on the cluster, or on the topic."""
    yield ADMIN, create(creation(resourceName="auto", resourcePatternType=4, operation=8))
    yield ADMIN, create(creation(resourceName="auto-b", operation=5))
    for name in ("auto-a", "auto-b", "auto-a"):
        yield "alice", Probe("Metadata", 12, metadata(name, creates=True))
    yield ADMIN, create(creation(resourceType=4, resourceName="kafka-cluster", operation=5))
    yield "alice", Probe("Metadata", 12, metadata("auto-c", creates=True))
    yield "bob", Probe("Metadata", 12, metadata("auto-d", creates=True))


def _random(random: Random) -> Iterator[Step]:
    for _ in range(STEPS):
        if random.random() < 0.35:
            yield ADMIN, create(*(random_entry(random) for _ in range(random.randint(1, 4))))
        elif random.random() < 0.15:
            wanted = random.choice(
                (
                    every_acl(principalFilter=f"User:{random.choice(PRINCIPALS)}"),
                    every_acl(resourceTypeFilter=random.choice((2, 3, 4, 5))),
                    every_acl(patternTypeFilter=2, resourceNameFilter=random.choice(NAMES)),
                    every_acl(permissionType=2),
                )
            )
            yield ADMIN, delete(wanted)
        who = random.choice(PRINCIPALS)
        for _ in range(3):
            yield who, random.choice(probes(random.choice(NAMES)))


def random_entry(random: Random) -> dict[str, Any]:
    """An entry of CreateAcls for one of the principals or all of them."""
    kind = random.choice(tuple(_RESOURCES))
    name = random.choice(_RESOURCES[kind])
    return creation(
        resourceType=kind,
        resourceName=name,
        resourcePatternType=3 if kind == 4 or name == "*" else random.choice((3, 4)),
        principal=f"User:{random.choice((*PRINCIPALS, '*'))}",
        host=random.choice(_HOSTS),
        operation=random.choice(_OPERATIONS[kind]),
        permissionType=random.choice((2, 3, 3)),
    )


def outcome(answer: Any) -> Any:
    """Errors of an answer by what they are about, and authorized operations; lists are compared without their order."""
    if isinstance(answer, list):
        found = [each for each in map(outcome, answer) if each not in ({}, [], None)]
        return sorted(found, key=str)
    if isinstance(answer, dict):
        kept = {
            key: outcome(value) if isinstance(value, dict | list) else _scalar(key, value)
            for key, value in answer.items()
            if isinstance(value, dict | list) or _is_compared(key, answer)
        }
        return {key: value for key, value in kept.items() if value not in ({}, [], None)}
    return answer


def _is_compared(key: str, part: dict[str, Any]) -> bool:
    """Whether a field is compared; the host of a broker is not that of an ACL."""
    return key.endswith(("errorCode", "ErrorCode")) or (key in _COMPARED and not (key == "host" and "port" in part))


def _scalar(key: str, value: Any) -> Any:
    return ErrorCode(value).name if key.endswith(("errorCode", "ErrorCode")) else value
