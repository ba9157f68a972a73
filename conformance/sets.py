"""Sets of scripts: each is played on a cluster of its own settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from conformance.groups.commits import groups
from conformance.groups.mixed import POLICY, mixed
from conformance.groups.random_moves import random_moves
from conformance.groups.sequences import sequences as member_sequences
from conformance.groups.tables import table as group_table
from conformance.records.compaction import compaction
from conformance.records.mixtures import record_mixtures
from conformance.records.transaction_log import EXPIRATION_MS, LOG_PARTITIONS, transaction_log
from conformance.transactions.features import features
from conformance.transactions.interleaving import deletions, orders, sessions
from conformance.transactions.lives import SECRET, denials, exhausted, restarts, topics
from conformance.transactions.mixtures import mixtures
from conformance.transactions.sequences import sequences
from conformance.transactions.states import EXPIRED, STATES, TIMED_OUT, State
from conformance.transactions.tables import table
from conformance.transactions.three_brokers import three_brokers
from conformance.transactions.unusual import forgotten, timed_out, unusual
from rejoin.conform.player.script import Script, ScriptSet

COMMON: Final = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.coordinator.append.linger.ms": "0",
    "log.retention.ms": "-1",
    "log.roll.ms": "9223372036854775807",
}
"""Settings of all sets, as in the recordings that these go on from."""


VERSION_1_STATES: Final = (
    "empty",
    "ongoing",
    "ongoing-with-offsets",
    "second-ongoing",
    "complete-commit",
    "complete-abort",
    "fenced-while-ongoing",
    "renewed",
)
"""Where the older versions differ."""
VERSION_1_REQUESTS: Final = ("init", "add-partitions", "end", "produce", "offsets", "markers", "read")


def _version_1() -> Iterable[Script]:
    return table(VERSION_1_REQUESTS, _named(VERSION_1_STATES), version=1)


STUCK: Final = {
    "v5-commit",
    "v5-abort",
    "v5-commit-older",
    "v5-abort-older",
    "v5-abort-newer",
    "v5-other-id",
    "v5-abort-twice",
    "v13-again",
}
"""Requests whose records have no form in version 0: in Kafka their transactional id is stuck from then on."""


def _version_0() -> Iterable[Script]:
    requests = ("init", "end", "produce", "offsets")
    states = ("ongoing", "complete-commit", "fenced-while-ongoing")
    return table(requests, _named(states), version=1, takes=lambda name: name not in STUCK)


def _unverified() -> Iterable[Script]:
    states = ("unknown", "empty", "ongoing", "complete-commit", "fenced-while-ongoing")
    return table(("produce", "offsets"), _named(states))


def _named(states: Iterable[str]) -> dict[str, State]:
    return {name: STATES[name] for name in states}


LATE_REQUESTS: Final = ("init", "add-partitions", "end", "produce", "offsets", "markers")


def _timed_out() -> Iterable[Script]:
    return itertools.chain(table(LATE_REQUESTS, TIMED_OUT, wait_ms=1_000), timed_out())


def _expired() -> Iterable[Script]:
    return table(LATE_REQUESTS, EXPIRED, wait_ms=3_500)


def _by_hand() -> Iterable[Script]:
    return itertools.chain(orders(), deletions(), sessions(), groups(), topics())


def _consumer_groups() -> Iterable[Script]:
    return itertools.chain(group_table(), member_sequences(60))


CONSUMER_GROUPS: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.migration.policy": "bidirectional",
}
MOVES: Final = {"bidirectional": 36, "upgrade": 28, "downgrade": 28, "disabled": 28}
"""How many random migrations there are for each policy.

In those of ``moves-shared-slots`` the broker drew ids that share a slot of its maps when their group was converted.
With other ids they are as the rest.
"""
DENIED: Final = ("group", "topic", "transactional-id")
TIMEOUTS: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
EXPIRY: Final = {
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": "3000",
}
ACLS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}

SESSIONS: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "300"}
FORGETFUL: Final = {"producer.id.expiration.ms": "2000", "producer.id.expiration.check.interval.ms": "100"}


def _older_sequences(version: int) -> Iterable[Script]:
    return sequences(12, version)


OF_OLDER_VERSIONS: Final[tuple[tuple[str, Callable[[int], Iterable[Script]], dict[str, Any]], ...]] = (
    ("unusual", unusual, {"at_once": 1}),
    ("sequences", _older_sequences, {"at_once": 1}),
    ("restarts", restarts, {"at_once": 1, "is_fresh": False}),
    ("epochs", exhausted, {"is_fresh": False}),
)
"""Sets for clusters of transaction versions 1 and 0."""

CLEANING: Final = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100"}
OF_LOG: Final = CLEANING | TIMEOUTS | {"transaction.state.log.num.partitions": str(LOG_PARTITIONS)}
OF_LOG_WITH_EXPIRY: Final = OF_LOG | EXPIRY | {"transactional.id.expiration.ms": str(EXPIRATION_MS)}
UNVERIFIED: Final = {"transaction.partition.verification.enable": "false"}
UNVERIFIED_SEEDS: Final = {2: 414, 1: 316, 0: 416}
"""The first seed for each transaction version: batches that begin transactions of which no coordinator knows."""

RECORD_SEEDS: Final = (
    *(5000, 5001, 5002, 5003, 5014, 5015, 5019, 5030, 5055, 5056, 5062),
    *(5067, 5078, 5083, 5096, 5321, 5338, 5352, 5412, 5456, 5470, 5482),
)
"""Seeds that found an unexpected difference, and some others."""

_SETS: Final = (
    ScriptSet("one", table),
    ScriptSet("several", _by_hand),
    ScriptSet("sequences", lambda: sequences(40)),
    ScriptSet("timeouts", _timed_out, TIMEOUTS),
    ScriptSet("expiry", _expired, EXPIRY),
    ScriptSet("denied", denials, ACLS, deny=tuple(f"{kind}={SECRET}-*" for kind in DENIED)),
    ScriptSet("restarts", restarts, at_once=1, is_fresh=False),
    ScriptSet("epochs", exhausted, is_fresh=False),
    ScriptSet("groups", _consumer_groups, CONSUMER_GROUPS, folder="consumer-groups"),
    ScriptSet("mixed-groups", mixed, CONSUMER_GROUPS, folder="consumer-groups", at_once=1, is_fresh=False),
    *(
        ScriptSet(
            f"moves-{policy}",
            partial(random_moves, policy, count),
            CONSUMER_GROUPS | {POLICY: policy},
            at_once=2,
            folder="consumer-groups",
        )
        for policy, count in MOVES.items()
    ),
    ScriptSet(
        "moves-shared-slots",
        partial(random_moves, "bidirectional", 2, 31_013),
        CONSUMER_GROUPS | {POLICY: "bidirectional"},
        at_once=2,
        folder="consumer-groups",
    ),
    *(
        ScriptSet(f"{name}-tv{version}", partial(scripts, version), features={"transaction.version": version}, **more)
        for version in (1, 0)
        for name, scripts, more in OF_OLDER_VERSIONS
    ),
    *(
        ScriptSet(
            "three-brokers" if version == 2 else f"three-brokers-tv{version}",
            partial(three_brokers, version),
            TIMEOUTS | SESSIONS,
            features={} if version == 2 else {"transaction.version": version},
            brokers=3,
            at_once=1,
            is_fresh=False,
        )
        for version in (2, 1, 0)
    ),
    ScriptSet("unusual", unusual, at_once=1),
    ScriptSet("forgotten", forgotten, FORGETFUL),
    ScriptSet("features", features, at_once=1),
    ScriptSet("compaction", compaction, CLEANING, at_once=1),
    *(
        ScriptSet(
            f"transaction-log{'-expiry' if expires else ''}-tv{version}",
            partial(transaction_log, version, expires=expires),
            OF_LOG_WITH_EXPIRY if expires else OF_LOG,
            features={"transaction.version": version},
            at_once=1,
            is_fresh=expires,
        )
        for expires in (False, True)
        for version in (2, 1, 0)
    ),
    ScriptSet("record-mixtures", partial(record_mixtures, RECORD_SEEDS)),
    ScriptSet("tv1", _version_1, features={"transaction.version": 1}),
    ScriptSet("tv0", _version_0, features={"transaction.version": 0}),
    *(
        ScriptSet(
            f"unverified-sequences{'' if version == 2 else f'-tv{version}'}",
            partial(sequences, 3, version, first),
            UNVERIFIED,
            features={"transaction.version": version},
            at_once=1,
        )
        for version, first in UNVERIFIED_SEEDS.items()
    ),
    ScriptSet("unverified", _unverified, UNVERIFIED),
    *(
        ScriptSet(
            f"mixtures-tv{version}", partial(mixtures, 8, version), features={"transaction.version": version}, at_once=1
        )
        for version in (2, 1, 0)
    ),
)

SETS: Final = tuple(replace(each, settings=COMMON | each.settings) for each in _SETS)
