"""What is offered as each of Kafka's releases."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.brokers.releases import RELEASES, RELEASES_TEXT, newest_versions
from rejoin.protocol.registry import (
    ADD_RAFT_VOTER,
    ALTER_REPLICA_LOG_DIRS,
    APIS,
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    EXPIRE_DELEGATION_TOKEN,
    FETCH,
    LIST_CONFIG_RESOURCES,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    REMOVE_RAFT_VOTER,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    UNREGISTER_BROKER,
    WRITE_TXN_MARKERS,
    Api,
)

KAFKA_4: Final[dict[Api, int]] = {
    PRODUCE: 3,
    FETCH: 4,
    LIST_OFFSETS: 1,
    OFFSET_COMMIT: 2,
    OFFSET_FETCH: 1,
    CREATE_TOPICS: 2,
    DELETE_TOPICS: 1,
    OFFSET_FOR_LEADER_EPOCH: 2,
    WRITE_TXN_MARKERS: 1,
    DESCRIBE_ACLS: 1,
    CREATE_ACLS: 1,
    DELETE_ACLS: 1,
    DESCRIBE_CONFIGS: 1,
    ALTER_REPLICA_LOG_DIRS: 1,
    DESCRIBE_LOG_DIRS: 1,
    CREATE_DELEGATION_TOKEN: 1,
    RENEW_DELEGATION_TOKEN: 1,
    EXPIRE_DELEGATION_TOKEN: 1,
    DESCRIBE_DELEGATION_TOKEN: 1,
    SHARE_FETCH: 1,
    SHARE_ACKNOWLEDGE: 1,
    SHARE_GROUP_HEARTBEAT: 1,
    SHARE_GROUP_DESCRIBE: 1,
}
"""The oldest versions of Kafka 4 (KIP-896), and of share groups after their early access; others begin with 0."""

ALWAYS: Final[dict[Api, int]] = {PRODUCE: 3, FETCH: 4, DESCRIBE_CONFIGS: 1}
"""The oldest versions that are served as any release."""


KRAFT_ONLY: Final = {
    each.key: "4.0"
    for each in (
        *(DESCRIBE_TOPIC_PARTITIONS, LIST_CONFIG_RESOURCES),
        *(DESCRIBE_QUORUM, UNREGISTER_BROKER, ADD_RAFT_VOTER, REMOVE_RAFT_VOTER),
    )
}
"""APIs that a broker with ZooKeeper has not, by the first release whose versions were taken from one with KRaft."""


@cache
def kafka_python_versions() -> dict[str, dict[int, int]]:
    """The newest versions that kafka-python knows of a broker of each release: read, as importing it takes long."""
    kafka = find_spec("kafka")
    assert kafka is not None
    assert kafka.origin is not None
    text = (Path(kafka.origin).parent / "protocol" / "broker_version_data.py").read_text(encoding="utf-8")
    (table,) = re.findall(r"^BROKER_API_VERSIONS = (\{.*?^\})", text, re.MULTILINE | re.DOTALL)
    releases = {".".join(map(str, release)): versions for release, versions in ast.literal_eval(table).items()}
    return {
        {"0.11": "0.11.0"}.get(release, release): {key: newest for key, (_, newest) in versions.items()}
        for release, versions in releases.items()
    }


def test_the_newest_release_is_offered_whole() -> None:
    assert offered(RELEASES[-1]) == offered()


@pytest.mark.parametrize("release", RELEASES[:-1])
def test_each_version_has_the_release_that_kafka_python_knows_it_from(release: str) -> None:
    known, ours = kafka_python_versions()[release], newest_versions(release)
    keys = {api.key for api in APIS if RELEASES.index(release) >= RELEASES.index(KRAFT_ONLY.get(api.key, RELEASES[0]))}
    assert {key: ours.get(key) for key in keys} == {key: known.get(key) for key in keys}


@pytest.mark.parametrize("release", RELEASES)
def test_the_oldest_versions_are_those_of_the_release(release: str) -> None:
    oldest = KAFKA_4 if release.startswith("4.") else ALWAYS
    assert {key: first for key, (first, _) in offered(release).items() if first} == {
        api.key: first for api, first in oldest.items() if api.key in offered(release)
    }


def test_an_older_release_has_the_versions_that_kafka_4_gave_up() -> None:
    assert offered("2.8")[OFFSET_COMMIT.key] == (0, 8)
    assert offered("1.1")[OFFSET_FOR_LEADER_EPOCH.key] == (0, 0)
    assert offered("1.1")[DESCRIBE_LOG_DIRS.key] == (0, 0)


def test_topic_partitions_can_be_described_from_3_8_on() -> None:
    having = [release for release in RELEASES if DESCRIBE_TOPIC_PARTITIONS.key in offered(release)]
    assert having == ["3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"]


@pytest.mark.parametrize(("release", "handshake", "authenticate"), [("1.0", 1, 0), ("2.2", 1, 1), ("2.8", 1, 2)])
def test_clients_of_every_release_can_log_in(release: str, handshake: int, authenticate: int) -> None:
    newest = {key: last for key, (_, last) in offered(release).items()}
    assert (newest[SASL_HANDSHAKE.key], newest[SASL_AUTHENTICATE.key]) == (handshake, authenticate)


def test_nothing_is_taken_back_by_a_later_release() -> None:
    for before, after in pairwise(RELEASES):
        older, newer = newest_versions(before), newest_versions(after)
        assert all(newer[key] >= version for key, version in older.items()), after


def test_a_release_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=re.escape(f"there is no release '5.0': expected {RELEASES_TEXT}")):
        newest_versions("5.0")
    spans = re.findall(r"([\d.]+)(?: (?:to|or) ([\d.]+))?", RELEASES_TEXT.replace("or 4.0", "4.0"))
    assert [end for span in spans for end in span if end] == [
        "0.11.0",
        "1.0",
        "1.1",
        "2.0",
        "2.8",
        "3.0",
        "3.9",
        "4.0",
        "4.4",
    ]
    assert RELEASES[0] == "0.11.0"
    assert RELEASES[-1] == "4.4"
