"""Lines that bugs of brokers and clients leave in logs, and lines that state the version of a broker or a client.

A sign is an expression that is looked for within a record: in its text, and in the lines below it such as those of an
exception. Which bug a sign belongs to, and in which versions, is in :mod:`rejoin.pipeline.findings.known_bugs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rejoin.journal.kafka_logs.clients.errors import JAVA_EXCEPTIONS
from rejoin.journal.kafka_logs.clients.names import (
    AIOKAFKA,
    BROD,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    RDKAFKA,
    SARAMA,
)

BROKER: Final = "kafka"
"""A broker of Kafka. Clients have the names that readers of their logs have for them."""


class BugSign(NamedTuple):
    """A sign: ``words`` are in the record wherever the expression is found."""

    name: str
    software: str
    words: str
    pattern: str


BUG_SIGNS: Final[tuple[BugSign, ...]] = (
    # --- brokers, in the exception below a request that failed
    BugSign(
        "heartbeat-of-unknown-member",
        BROKER,
        "tryCompleteHeartbeat",
        r"NoSuchElementException: key not found: .*GroupCoordinator\S*tryCompleteHeartbeat",
    ),
    BugSign(
        "instance-id-not-written",
        BROKER,
        "Attempted to write a non-default groupInstanceId",
        r"Attempted to write a non-default groupInstanceId at version \d",
    ),
    BugSign(
        "buffer-of-another-thread",
        BROKER,
        "ChunkedBytesStream",
        r"NullPointerException\b.*utils\.ChunkedBytesStream",
    ),
    # --- Java's consumer
    BugSign(
        "cooperative-assignor-violates",
        JAVA,
        "With the COOPERATIVE protocol, owned partitions",
        r"With the COOPERATIVE protocol, owned partitions cannot be reassigned to other members",
    ),
    BugSign(
        "no-assignment-protocol",
        JAVA,
        "Coordinator selected invalid assignment protocol:",
        r"Coordinator selected invalid assignment protocol:(?: null)?\s*(?:\n|$|\()",
    ),
    BugSign(
        "offsets-of-lost-partition",
        JAVA,
        "No current assignment for partition",
        r"No current assignment for partition .*SubscriptionState\.(?:requestFailed|setNextAllowedRetry)",
    ),
    BugSign(
        "commit-of-unknown-topic",
        JAVA,
        "Offset commit failed on partition",
        r"Offset commit failed on partition \S+ at offset -?\d+: This server does not host this topic-partition",
    ),
    BugSign(
        "generation-reset-by-sync",
        JAVA,
        "encountered REBALANCE_IN_PROGRESS from SYNC_GROUP",
        r"Resetting generation .*due to: encountered REBALANCE_IN_PROGRESS from SYNC_GROUP response",
    ),
    BugSign(
        "commit-timed-out",
        JAVA,
        "expired before successfully committing offsets",
        r"Timeout of \d+ms expired before successfully committing offsets",
    ),
    # --- Kafka Connect
    BugSign(
        "connect-tasks-revoked",
        JAVA,
        "Broker coordinator was unreachable for",
        r"Broker coordinator was unreachable for \d+ms\. Revoking previous assignment",
    ),
    BugSign(
        "connect-config-log-slow",
        JAVA,
        "Didn't reach end of config log",
        r"Didn't reach end of config log quickly enough",
    ),
    # --- librdkafka
    BugSign(
        "session-during-rebalance",
        RDKAFKA,
        "Consumer group session timed out",
        r"Consumer group session timed out .*last error was Broker: Group rebalance in progress\)",
    ),
    BugSign(
        "timed-commit-of-old-generation",
        RDKAFKA,
        "cgrp auto commit timer",
        r"cgrp auto commit timer: returned: Broker: Specified group generation id is not valid",
    ),
    BugSign(
        "lost-by-a-commit",
        RDKAFKA,
        "OffsetCommit error: Illegal generation",
        r"with \d+ assigned partition\(s\) \(lost\): OffsetCommit error: Illegal generation",
    ),
    BugSign(
        "roundrobin-assert",
        RDKAFKA,
        "rdkafka_roundrobin_assignor.c",
        r"rdkafka_roundrobin_assignor\.c:\d+.*[Aa]ssert",
    ),
    BugSign("join-response-assert", RDKAFKA, "rkbuf->rkbuf_rkb", r"assert: rkbuf->rkbuf_rkb"),
    BugSign(
        "started-assert",
        RDKAFKA,
        "rktp->rktp_started",
        r"Assertion `rktp->rktp_started' failed",
    ),
    BugSign(
        "heartbeat-invalid-request",
        RDKAFKA,
        "ConsumerGroupHeartbeat fatal error",
        r"ConsumerGroupHeartbeat fatal error: Broker: Invalid request",
    ),
    # --- kafka-python
    BugSign(
        "python-session-expired",
        KAFKA_PYTHON,
        "Heartbeat session expired, marking coordinator dead",
        r"Heartbeat session expired, marking coordinator dead",
    ),
    BugSign(
        "python-not-recognized",
        KAFKA_PYTHON,
        "Heartbeat: local member_id was not recognized",
        r"Heartbeat: local member_id was not recognized",
    ),
    BugSign(
        "python-joins-its-own-thread",
        KAFKA_PYTHON,
        "cannot join current thread",
        r"Heartbeat thread for group \S+ failed due to unexpected error: cannot join current thread"
        r"|kafka/coordinator/base\.py.*RuntimeError: cannot join current thread",
    ),
    BugSign(
        "python-commit-during-rebalance",
        KAFKA_PYTHON,
        "RebalanceInProgressError",
        r"OffsetCommit for group \S+ failed: \[Error 27\] RebalanceInProgressError",
    ),
    BugSign(
        "python-heartbeat-refused",
        KAFKA_PYTHON,
        "Error sending HeartbeatRequest to node",
        r"Error sending HeartbeatRequest to node \S+ \[\[Error (?:22|25|27)\]",
    ),
    # --- aiokafka
    BugSign(
        "aiokafka-synced-without-generation",
        AIOKAFKA,
        "with generation -1",
        r"Successfully synced group \S+ with generation -1",
    ),
    # --- KafkaJS
    BugSign(
        "kafkajs-illegal-generation",
        KAFKAJS,
        "Specified group generation id is not valid",
        r"Crash: KafkaJS\w+: Specified group generation id is not valid",
    ),
    BugSign(
        "kafkajs-empty-assignment",
        KAFKAJS,
        "assignerProtocol",
        r"Crash: .*buffer bounds.*assignerProtocol",
    ),
    # --- Go
    BugSign(
        "sarama-closed-channel",
        SARAMA,
        "send on closed channel",
        r"panic: send on closed channel.*\(\*consumerGroup\)\.handleError",
    ),
    BugSign(
        "franz-commit-of-no-member",
        FRANZ_GO,
        "in default commit: unable to commit offsets",
        r"in default commit: unable to commit offsets for topic partition.*(?:UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION)",
    ),
    BugSign(
        "franz-commit-during-rebalance",
        FRANZ_GO,
        "in default commit: unable to commit offsets",
        r"in default commit: unable to commit offsets for topic partition.*REBALANCE_IN_PROGRESS",
    ),
    # --- brod
    BugSign(
        "brod-member-id-required",
        BROD,
        "member_id_required",
        r"failed to join group\s+reason: ?:?\W*member_id_required",
    ),
    BugSign("brod-heartbeat-timeout", BROD, "hb_timeout", r"[Ll]eaving group, reason: ?:?hb_timeout"),
)
"""In the order of the software."""

_NUMBER: Final = r"(?P<version>\d+\.\d+(?:\.\d+)*)(?![\w+-]|\.\w)"
"""A release of the project itself. Vendors add a suffix, and number fixes of their own."""
_STATED: Final = (
    (JAVA, r"Kafka (?:Streams )?version ?: " + _NUMBER),
    (JAVA, r"\bkafka-(?:clients|streams)-(?P<version>\d+\.\d+\.\d+)\.jar"),
    (RDKAFKA, r"\blibrdkafka v?" + _NUMBER),
    (KAFKA_PYTHON, r"\bkafka[-_]python(?:==|-| v?)" + _NUMBER),
    (AIOKAFKA, r"\baiokafka(?:==|-| v?)" + _NUMBER),
    (KAFKAJS, r"\bkafkajs@" + _NUMBER),
    (SARAMA, r"/sarama@v" + _NUMBER),
    (FRANZ_GO, r"/franz-go@v" + _NUMBER),
    (BROD, r"/brod-" + _NUMBER),
)
"""Forms in which versions are stated: by Kafka itself, by librdkafka, in paths of stack traces, by installers."""
_VERSIONS: Final = tuple((software, re.compile(pattern)) for software, pattern in _STATED)
_OF_VERSIONS: Final = (
    *("Kafka version", "Kafka Streams version", "kafka-clients-", "kafka-streams-", "librdkafka", "kafka-python"),
    *("kafka_python", "aiokafka=", "aiokafka-", "aiokafka ", "kafkajs@", "/sarama@v", "/franz-go@v", "/brod-"),
)
_SIGNS: Final = tuple((sign, re.compile(sign.pattern, re.DOTALL)) for sign in BUG_SIGNS)
WORDS: Final = tuple(sorted({*_OF_VERSIONS, *JAVA_EXCEPTIONS, *(sign.words for sign in BUG_SIGNS)}))
_LONGEST_WORD: Final = max(map(len, WORDS))
STATES_VERSION: Final = b"Kafka version"
"""Bytes that each of Kafka's processes logs as it starts, brokers as well as clients."""
MARKS: Final = (
    *sorted({sign.words.encode() for sign in BUG_SIGNS if sign.software == BROKER}),
    *(STATES_VERSION, b"Error when handling request", b"Unexpected error handling request"),
)
"""Bytes of which one is in the first line of a broker's record with a sign, or with its version."""
SIGNS_OF_CLIENTS: Final = re.compile(
    "|".join(sorted({re.escape(sign.words) for sign in BUG_SIGNS if sign.software != BROKER})).encode()
)
"""Bytes of which some are in every log of a client with a sign."""


def words_in(chunks: Iterable[bytes]) -> tuple[str, ...]:
    """The words of signs, exceptions and versions that a file has anywhere: a record is searched for these alone."""
    found: dict[str, None] = {}
    before = b""
    for chunk in chunks:
        text = before + chunk
        found.update((word, None) for word in WORDS if word not in found and word.encode() in text)
        before = text[-_LONGEST_WORD:]
    return tuple(found)


def signs_in(text: str, more: Sequence[str] = (), words: Sequence[str] = WORDS) -> Iterator[BugSign]:
    """The signs of bugs in a record. ``more``: the lines below its first. ``words``: those of its file."""
    whole = "\n".join((text, *more)) if more else text
    if not _has_any(whole, words):
        return
    for sign, pattern in _SIGNS:
        if sign.words in whole and pattern.search(whole) is not None:
            yield sign


def versions_in(text: str, more: Sequence[str] = (), words: Sequence[str] = WORDS) -> Iterator[tuple[str, str]]:
    """Software and version, wherever a record states them."""
    whole = "\n".join((text, *more)) if more else text
    if not _has_any(whole, words):
        return
    for software, pattern in _VERSIONS:
        yield from dict.fromkeys((software, match["version"]) for match in pattern.finditer(whole))


def _has_any(text: str, words: Sequence[str]) -> bool:
    return any(map(text.__contains__, words))
