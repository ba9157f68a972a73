"""Requests about elections, reassignments, log directories and the quorum on a single node: who asks, and what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, Step

NO_RIGHTS: Final = "alice"
LOG_DIR: Final = "$log-dir"
"""Stands for the directory of the broker."""
CLUSTER: Final = "$cluster"
"""Stands for the id of the cluster."""
OTHER_ID: Final = "AAAAAAAAAAAAAAAAAAAABw"
METADATA: Final = "__cluster_metadata"


def replica_steps() -> Iterator[Step]:
    """All steps, in order; the last ones change the broker for good."""
    for who in (ADMIN, NO_RIGHTS):
        for probe in (*_elections(), *_reassignments(), *_listings(), *_directories(), *_quorum(), *_members()):
            yield who, probe


def _elections() -> Iterator[Probe]:
    choices: tuple[Any, ...] = (
        None,
        [],
        [{"topic": "pay", "partitions": [0]}],
        [{"topic": "pay", "partitions": [9, 0, -1]}, {"topic": "nowhere", "partitions": [0]}],
        [{"topic": "pay", "partitions": []}],
        [{"topic": "pay", "partitions": [0, 0]}],
        [{"topic": "pay", "partitions": [0]}, {"topic": "pay", "partitions": [0]}],
        [{"topic": "", "partitions": [0]}, {"topic": "a/b", "partitions": [0]}],
        [{"topic": METADATA, "partitions": [0]}],
    )
    for version in (0, 1, 2):
        for kind in (0,) if version == 0 else (0, 1, 2, -1):
            for topics in choices:
                typed = {} if version == 0 else {"electionType": kind}
                yield Probe("ElectLeaders", version, {**typed, "topicPartitions": topics, "timeoutMs": 5_000})


def _reassignments() -> Iterator[Probe]:
    replicas: tuple[Any, ...] = (None, [1], [], [1, 1], [2], [1, 2], [2, 1], [-1], [1, -1], [2, 2])
    for version in (0, 1):
        for allows in (True,) if version == 0 else (True, False):
            extra = {} if version == 0 else {"allowReplicationFactorChange": allows}
            for each in replicas:
                for topic, index in (("pay", 0), ("pay", 9), ("nowhere", 0)):
                    yield _reassign(version, extra, (topic, [(index, each)]))
            yield _reassign(version, extra)
            yield _reassign(version, extra, ("pay", []))
            yield _reassign(version, extra, ("pay", [(0, [1]), (0, None)]))
            yield _reassign(version, extra, ("pay", [(0, [1])]), ("pay", [(0, None)]))
            yield _reassign(version, extra, ("pay", [(0, None), (9, [1])]), ("pay-in", [(0, [2])]), ("", [(0, [1])]))


def _reassign(version: int, extra: dict[str, Any], *topics: tuple[str, list[tuple[int, Any]]]) -> Probe:
    entries = [
        {"name": name, "partitions": [{"partitionIndex": index, "replicas": each} for index, each in partitions]}
        for name, partitions in topics
    ]
    return Probe("AlterPartitionReassignments", version, {"timeoutMs": 5_000, "topics": entries, **extra})


def _listings() -> Iterator[Probe]:
    choices: tuple[Any, ...] = (
        None,
        [],
        [{"name": "pay", "partitionIndexes": [0, 9]}],
        [{"name": "pay", "partitionIndexes": []}],
        [{"name": "nowhere", "partitionIndexes": [0]}, {"name": "pay", "partitionIndexes": [0]}],
    )
    for topics in choices:
        yield Probe("ListPartitionReassignments", 0, {"timeoutMs": 5_000, "topics": topics})


def _directories() -> Iterator[Probe]:
    def move(version: int, *dirs: tuple[str, list[tuple[str, list[int]]]]) -> Probe:
        entries = [
            {"path": path, "topics": [{"name": name, "partitions": indexes} for name, indexes in topics]}
            for path, topics in dirs
        ]
        return Probe("AlterReplicaLogDirs", version, {"dirs": entries})

    for version in (1, 2):
        yield move(version)
        for path in (LOG_DIR, "/nowhere", "relative", "", f"{LOG_DIR}/"):
            yield move(version, (path, [("pay", [0])]))
            yield move(version, (path, [("pay", [9, 0]), ("nowhere", [0]), ("pay-in", [0])]))
        yield move(version, (LOG_DIR, []))
        yield move(version, (LOG_DIR, [("pay", [])]))
        yield move(version, ("/nowhere", [("pay", [0])]), (LOG_DIR, [("pay", [0])]))
        yield move(version, (LOG_DIR, [("pay", [0])]), ("/nowhere", [("pay", [0])]))
    for version in range(1, 6):
        for topics in (None, [], [{"topic": "pay", "partitions": [0, 9]}, {"topic": "nowhere", "partitions": [0]}]):
            yield Probe("DescribeLogDirs", version, {"topics": topics})


def _quorum() -> Iterator[Probe]:
    def describe(version: int, *topics: tuple[str, list[int]]) -> Probe:
        entries = [
            {"topicName": name, "partitions": [{"partitionIndex": index} for index in indexes]}
            for name, indexes in topics
        ]
        return Probe("DescribeQuorum", version, {"topics": entries})

    for version in (0, 1, 2):
        yield describe(version, (METADATA, [0]))
        yield describe(version)
        yield describe(version, (METADATA, []))
        yield describe(version, (METADATA, [1]))
        yield describe(version, (METADATA, [0, 1]))
        yield describe(version, (METADATA, [0, 0]))
        yield describe(version, ("pay", [0]))
        yield describe(version, (METADATA, [0]), ("pay", [0]))


def _members() -> Iterator[Probe]:
    for broker in (99, -1):
        yield Probe("UnregisterBroker", 0, {"brokerId": broker})
        yield Probe("UnregisterController", 0, {"controllerId": broker})
    listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 9_999}
    additions: tuple[dict[str, Any], ...] = (
        {},
        {"clusterId": CLUSTER},
        {"clusterId": "other"},
        {"voterId": 1},
        {"voterId": -1},
        {"listeners": []},
        {"listeners": [{**listener, "name": "OTHER"}]},
        {"timeoutMs": 0},
    )
    for version in (0, 1):
        for changed in additions:
            base = {"clusterId": None, "timeoutMs": 1_000, "voterId": 9, "voterDirectoryId": OTHER_ID}
            more = {} if version == 0 else {"ackWhenCommitted": True}
            yield Probe("AddRaftVoter", version, {**base, "listeners": [listener], **more, **changed})
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"clusterId": CLUSTER},
        {"clusterId": "other"},
        {"voterId": 1},
        {"voterId": -1},
    )
    for changed in changes:
        base = {"clusterId": None, "voterId": 9, "voterDirectoryId": OTHER_ID}
        yield Probe("RemoveRaftVoter", 0, {**base, **changed})
