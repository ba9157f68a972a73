"""Sequences of ACLs and of requests: a table for each right, members whose rights change, and odd entries."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from conformance.player.random_play import seeded
from conformance.security.acl_probes import NAMES, Probe, every_acl, metadata
from conformance.security.acl_sequences import ADMIN, PRINCIPALS, Step, create, creation, delete, random_entry
from conformance.security.acls.cluster_probes import cluster_probes
from conformance.security.acls.group_probes import (
    MEMBER,
    consumer_heartbeat,
    group_probes,
    joining,
    share_heartbeat,
    streams_heartbeat,
    topic_id,
    topology,
)

RANDOM: Final = 24
STEPS: Final = 24
ALICE, BOB = PRINCIPALS[:2]
CLUSTER_ENTRY: Final = {"resourceType": 4, "resourceName": "kafka-cluster"}
_OPERATIONS: Final = {2: (3, 4, 5, 7, 8, 10, 11), 3: (3, 6, 8, 10, 11), 4: (5, 7, 8, 9, 10, 11, 12), 5: (4, 8)}
HOSTS: Final = (
    *("x y", " ", "127.0.0.1 ", " 127.0.0.1", "*x", "**", "localhost", "LOCALHOST", "ü", "a\tb", "a,b", "::1"),
    *("0:0:0:0:0:0:0:1", "[::1]", "::ffff:127.0.0.1", "127.1", "2130706433", "127.0.0.01", "256.1.1.1", "1.2.3"),
    *("/127.0.0.1", "/", "/8", "127.0.0.1/", "127.0.0.1/32", "127.0.0.1/0", "127.0.0.1/00", "127.0.0.1/08"),
    *(
        "127.0.0.1/+8",
        "127.0.0.1/-1",
        "127.0.0.1/8 ",
        " 127.0.0.1/8",
        "127.0.0.1/8/8",
        "127.0.0.1/a",
        "127.0.0.1/255.0.0.0",
    ),
    *(
        "0.0.0.0/0",
        "127.000.000.001/8",
        "0127.0.0.1/8",
        "256.0.0.1/8",
        "127.0.0.128/25",
        "::/0",
        "::ffff:127.0.0.1/128",
    ),
    *(
        "::ffff:127.0.0.0/104",
        "::127.0.0.1/128",
        "fe80::1%1/64",
        "[::1]/128",
        "[::1/128",
        "[127.0.0.1]/8",
        "[]/8",
        "::1/129",
        "::1/-1",
        "::1/",
        "1::2::3/8",
    ),
    *("::/+8", "::/0128", "::01.2.3.4/8", "::00001/8", "::12345/8", "1:2:3:4:5:6:7::/8", "1:2:3:4:5:6:7:8/8", ":::/8"),
    *("::ffff:127.0.0.0/8", "::ffff:7f00:1/8", "::1.2.3/8", "[fe80::1]/10", "[::1]x/8", "a:b/8", "x y/8", "*/8", "*/0"),
)
PRINCIPAL_TEXTS: Final = (
    *(
        "alice",
        ":",
        ":alice",
        "User:",
        "User: alice",
        "User:alice ",
        "user:alice",
        "USER:alice",
        "User:Alice",
        "User:a:b",
    ),
    *("Group:alice", "Group:*", "*:*", "*", "User:al*", "User:ANONYMOUS", "x y:z", "User:ü"),
)


def sequences() -> dict[str, list[Step]]:
    """All sequences by name; each begins without ACLs."""
    found = {"refused": [(ALICE, probe) for probe in every_probe("pay")]}
    for kind, operations in _OPERATIONS.items():
        for operation in operations:
            name = "kafka-cluster" if kind == 4 else "pay"
            entry = creation(resourceType=kind, resourceName=name, operation=operation)
            found[f"allowed-{kind}-{operation}"] = [
                (ADMIN, create(entry)),
                *((ALICE, probe) for probe in every_probe("pay")),
            ]
    found["everything"] = [
        (ADMIN, everything(ALICE)),
        *((ALICE, probe) for name in NAMES for probe in every_probe(name)),
    ]
    found |= {
        "classic-member": list(_classic_member()),
        "regular-expression": list(_regular_expression()),
        "described-members": list(_described_members()),
        "internal-topics": list(_internal_topics()),
        "transaction": list(_transaction()),
        "shared-unknown-topic": list(_shared_unknown_topic()),
        "unknown-numbers": list(_unknown_numbers()),
        "hosts": list(_texts("host", HOSTS)),
        "principals": list(_texts("principal", PRINCIPAL_TEXTS)),
        "names": list(_names()),
    }
    return found | {f"random-{seed}": list(_random(seeded(seed + 1_000))) for seed in range(RANDOM)}


def every_probe(name: str) -> list[Probe]:
    """Requests about what has this name."""
    return [*group_probes(name), *cluster_probes(name)]


def everything(who: str) -> Probe:
    """A CreateAcls that gives one principal all rights."""
    return create(
        *(
            creation(
                resourceType=kind,
                resourceName="kafka-cluster" if kind == 4 else "*",
                operation=2,
                principal=f"User:{who}",
            )
            for kind in _OPERATIONS
        )
    )


def _group(operation: int, who: str = ALICE, **changed: Any) -> dict[str, Any]:
    wanted = {"resourceType": 3, "resourceName": "*", "operation": operation, "principal": f"User:{who}"}
    return creation(**wanted, **changed)


def _forget(who: str, kind: int = 1) -> Step:
    return ADMIN, delete(every_acl(principalFilter=f"User:{who}", resourceTypeFilter=kind))


def _classic_member() -> Iterator[Step]:
    """A member whose right to read is taken, and given back."""
    member = {"groupId": "classic", "memberId": "$memberId$"}
    mine = {**member, "generationId": "$generationId$"}
    given = {"memberId": "$memberId$", "assignment": ""}
    heartbeat, leave = Probe("Heartbeat", 0, mine), Probe("LeaveGroup", 0, member)
    sync = Probe("SyncGroup", 0, {**mine, "assignments": [given]})
    again = joining("classic", memberId="$memberId$")
    yield ADMIN, create(_group(3))
    yield ALICE, joining("classic")
    yield ALICE, sync
    yield ALICE, heartbeat
    yield BOB, heartbeat
    yield _forget(ALICE)
    for probe in (heartbeat, again, sync, leave):
        yield ALICE, probe
    yield ADMIN, create(_group(8, BOB), _group(6, BOB), _group(3))
    for probe in (heartbeat, again, sync):
        yield ALICE, probe
    both = {"groups": ["classic"], "includeAuthorizedOperations": True}
    for api, body in (("DescribeGroups", both), ("DeleteGroups", {"groupsNames": ["classic"]})):
        yield BOB, Probe(api, 2 if api == "DeleteGroups" else 5, body)
    yield ADMIN, create(_group(3, permissionType=2, host="127.0.0.1"))
    yield ALICE, leave
    yield _forget(ALICE)
    yield ADMIN, create(_group(3))
    yield ALICE, leave
    yield BOB, Probe("DeleteGroups", 2, {"groupsNames": ["classic"]})


def _regular_expression() -> Iterator[Step]:
    """A member that subscribes by a pattern: only its group is checked, and topics that it may see are in its view."""
    join = consumer_heartbeat(
        "patterns", memberEpoch=0, rebalanceTimeoutMs=60_000, subscribedTopicRegex="pay.*", topicPartitions=[]
    )
    described = Probe("ConsumerGroupDescribe", 1, {"groupIds": ["patterns"], "includeAuthorizedOperations": True})
    leave = consumer_heartbeat("patterns", memberEpoch=-1)
    yield ALICE, join
    yield ADMIN, create(_group(3))
    yield ALICE, join
    yield ADMIN, described
    yield ADMIN, create(creation(operation=8), _group(8, BOB))
    yield ALICE, join
    yield BOB, described
    yield ALICE, consumer_heartbeat("patterns", memberEpoch=1, subscribedTopicRegex="", subscribedTopicNames=["other"])
    yield (
        ALICE,
        consumer_heartbeat(
            "patterns", memberEpoch=0, rebalanceTimeoutMs=60_000, subscribedTopicRegex="(", topicPartitions=[]
        ),
    )
    yield _forget(ALICE)
    yield ALICE, leave
    yield ADMIN, create(_group(3))
    yield ALICE, leave


def _described_members() -> Iterator[Step]:
    """Groups of each kind that a principal describes who may see the group, and none, one or all of its topics."""
    streams = {"activeTasks": [], "standbyTasks": [], "warmupTasks": [], "rebalanceTimeoutMs": 60_000}
    described = [
        Probe(f"{kind}GroupDescribe", version, {"groupIds": [group], "includeAuthorizedOperations": True})
        for kind, version, group in (("Consumer", 1, "c"), ("Share", 1, "s"), ("Streams", 0, "k"))
    ]
    names = ["pay", "pay-in"]
    yield ADMIN, everything(ALICE)
    yield (
        ALICE,
        consumer_heartbeat(
            "c", memberEpoch=0, rebalanceTimeoutMs=60_000, subscribedTopicNames=names, topicPartitions=[]
        ),
    )
    yield ALICE, share_heartbeat("s", memberEpoch=0, subscribedTopicNames=names)
    yield ALICE, streams_heartbeat("k", memberEpoch=0, processId="p", topology=topology("pay"), **streams)
    yield ADMIN, create(_group(8, BOB))
    yield from ((BOB, probe) for probe in described)
    yield ADMIN, create(creation(operation=8, principal=f"User:{BOB}"))
    yield from ((BOB, probe) for probe in described)
    yield ADMIN, create(creation(operation=8, principal=f"User:{BOB}", resourceName="pay-in"))
    yield from ((BOB, probe) for probe in described)
    yield ADMIN, create(creation(operation=8, principal=f"User:{BOB}", permissionType=2))
    yield from ((BOB, probe) for probe in described)
    yield ALICE, consumer_heartbeat("c", memberEpoch=-1)
    yield ALICE, share_heartbeat("s", memberEpoch=-1)
    yield ALICE, streams_heartbeat("k", memberEpoch=-1)


def _internal_topics() -> Iterator[Step]:
    """A topology whose topics must be made: with no right, with one on the topic, and with one on the cluster."""
    empty = {"activeTasks": [], "standbyTasks": [], "warmupTasks": [], "rebalanceTimeoutMs": 60_000, "processId": "p"}

    def join(group: str, source: str = "pay") -> Step:
        made = topology(source, internal=f"{group}-a-changelog", repartition=f"{group}-b-repartition")
        return ALICE, streams_heartbeat(group, memberEpoch=0, topology=made, **empty)

    def leave(group: str) -> Step:
        return ALICE, streams_heartbeat(group, memberEpoch=-1)

    yield join("app-1")
    yield ADMIN, create(_group(3))
    yield join("app-1")
    yield ADMIN, create(creation(operation=8), _group(3))
    yield join("app-1")
    yield ADMIN, create(creation(operation=5, resourceName="app-2-a-changelog"))
    for group in ("app-1", "app-2"):
        yield join(group)
        yield leave(group)
    yield ADMIN, create(creation(operation=8, resourceName="app-", resourcePatternType=4))
    for group in ("app-1", "app-2"):
        yield join(group)
        yield leave(group)
    yield ADMIN, create(creation(operation=5, **CLUSTER_ENTRY))
    yield join("app-3")
    yield leave("app-3")
    yield ADMIN, create(creation(operation=8, resourceName="app-", resourcePatternType=4, permissionType=2))
    yield join("app-3")
    yield leave("app-3")


def _transaction() -> Iterator[Step]:
    """A producer whose rights on its transactional id and on topics come one after the other."""
    nothing = {"transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1, "transactionalId": "mine"}
    begin = Probe("InitProducerId", 4, nothing)
    who = {"producerId": "$producerId$", "producerEpoch": "$producerEpoch$"}
    mine = {**who, "transactionalId": "mine"}
    add = Probe(
        "AddPartitionsToTxn",
        3,
        {
            **{f"v3AndBelow{key[0].upper()}{key[1:]}": value for key, value in mine.items()},
            "v3AndBelowTopics": [{"name": each, "partitions": [0]} for each in ("pay", "pay-in")],
        },
    )
    offsets = Probe("AddOffsetsToTxn", 3, {**mine, "groupId": "mine"})
    end = Probe("EndTxn", 3, {**mine, "committed": False})
    marker = {
        **who,
        "transactionResult": False,
        "coordinatorEpoch": 0,
        "topics": [{"name": "pay", "partitionIndexes": [0]}],
    }
    rights = (
        creation(resourceType=5, resourceName="mine", operation=8),
        creation(resourceType=5, resourceName="mine", operation=4),
        creation(operation=4),
        creation(operation=4, resourceName="pay-in"),
        _group(3),
        creation(operation=9, **CLUSTER_ENTRY),
        creation(operation=4, permissionType=2),
        creation(resourceType=5, resourceName="m", resourcePatternType=4, operation=8, permissionType=2),
        creation(resourceType=5, resourceName="m", resourcePatternType=4, operation=4, permissionType=2),
    )
    yield ADMIN, begin
    for right in (None, *rights):
        if right is not None:
            yield ADMIN, create(right)
        for probe in (begin, add, offsets, end, Probe("WriteTxnMarkers", 1, {"markers": [marker]})):
            yield ALICE, probe
        yield ALICE, Probe("DescribeTransactions", 0, {"transactionalIds": ["mine", "not-mine"]})
        yield (
            ALICE,
            Probe(
                "ListTransactions",
                2,
                {"stateFilters": [], "producerIdFilters": [], "durationFilter": -1, "transactionalIdPattern": "m.*"},
            ),
        )


def _shared_unknown_topic() -> Iterator[Step]:
    """Share consumers that name a topic that does not exist."""
    asked = {"groupId": "shared", "memberId": MEMBER, "shareSessionEpoch": 0}
    partitions = [{"topicId": topic_id("other"), "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}]
    body = {**asked, "maxWaitMs": 0, "minBytes": 0, "maxRecords": 1, "batchSize": 1, "forgottenTopicsData": []}
    yield ADMIN, everything(ALICE)
    yield ALICE, Probe("ShareFetch", 1, {**body, "topics": partitions})
    yield ALICE, Probe("ShareAcknowledge", 1, {**asked, "shareSessionEpoch": 1, "topics": partitions})


def _unknown_numbers() -> Iterator[Step]:
    """Types of resources and patterns, operations and permissions that are unknown, or only in filters."""
    numbers = {
        "resourceType": (0, 1, 6, 7, 8, 99, -1),
        "resourcePatternType": (0, 1, 2, 5, 99, -1),
        "operation": (0, 1, 5, 9, 12, 13, 14, 15, 16, 17, 99, -1),
        "permissionType": (0, 1, 4, 99, -1),
    }
    for version in (1, 3):
        for field, values in numbers.items():
            for value in values:
                yield ADMIN, create(creation(**{field: value}), creation(), version=version)
                name = {"resourcePatternType": "patternTypeFilter", "resourceType": "resourceTypeFilter"}.get(
                    field, field
                )
                yield ADMIN, Probe("DescribeAcls", version, every_acl(**{name: value}))
                yield ADMIN, delete(every_acl(**{name: value}), every_acl(principalFilter="User:x"), version=version)
    for changed in ({"resourceType": 6, "resourceName": "t"}, {"resourceType": 7, "resourceName": "User:bob"}):
        for operation in (2, 8, 13, 14):
            yield ADMIN, create(creation(**changed, operation=operation))
    yield ADMIN, Probe("DescribeAcls", 3, every_acl())
    yield ALICE, create(creation(operation=0))
    yield ALICE, Probe("DescribeAcls", 3, every_acl(operation=0))
    yield ALICE, delete(every_acl(permissionType=0))
    yield ADMIN, create()
    yield ADMIN, delete()
    yield ALICE, create()
    yield ALICE, delete()


def _texts(field: str, values: tuple[str, ...]) -> Iterator[Step]:
    """An entry with each text, and whether it then concerns a client of 127.0.0.1."""
    for value in values:
        yield ADMIN, create(creation(operation=8, **{field: value}))
        yield ALICE, Probe("Metadata", 12, metadata("pay"))
        filters = every_acl(**{f"{field}Filter": value})
        yield ADMIN, Probe("DescribeAcls", 3, filters)
        yield ADMIN, delete(filters)


def _names() -> Iterator[Step]:
    """Names of resources: odd ones, and those of which only a part is the topic's."""
    for name in ("*", "", "pay ", "PAY", "p*", "a/b", ".", "ü", "x" * 300, "\x00", "pay"):
        for pattern in (3, 4):
            yield ADMIN, create(creation(resourceName=name, resourcePatternType=pattern, operation=8))
            yield ALICE, Probe("Metadata", 12, metadata("pay"))
            yield ADMIN, delete(every_acl(resourceNameFilter=name, patternTypeFilter=pattern))
    for name in ("kafka-cluster", "kafka", "*"):
        for pattern in (3, 4):
            entry = creation(resourceType=4, resourceName=name, resourcePatternType=pattern, operation=8)
            yield ADMIN, create(entry)
            yield ALICE, Probe("DescribeAcls", 3, every_acl())
            yield ADMIN, delete(every_acl(resourceTypeFilter=4))


def _random(random: Random) -> Iterator[Step]:
    for _ in range(STEPS):
        if random.random() < 0.4:
            yield ADMIN, create(*(random_entry(random) for _ in range(random.randint(1, 4))))
        elif random.random() < 0.15:
            yield ADMIN, delete(every_acl(principalFilter=f"User:{random.choice(PRINCIPALS)}"))
        who = random.choice(PRINCIPALS)
        for _ in range(3):
            yield who, random.choice(every_probe(random.choice(NAMES)))
