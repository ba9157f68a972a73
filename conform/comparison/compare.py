"""Compares two plays of a script: every field of every answer, and when it came.

What Kafka promises no order for is compared as a set (``UNORDERED``); an answer of Kafka may come up to ``LATE_MS``
after the emulator's, which needs no time to think, and ``EARLY_MS`` before it, which is the grain of recorded times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

LATE_MS: Final = 300
EARLY_MS: Final = 30

UNORDERED: Final = {
    "AlterConfigs": {"responses"},
    "ApiVersions": {"apiKeys"},
    "CreatePartitions": {"results"},
    "CreateTopics": {"topics"},
    "DeleteGroups": {"results"},
    "DeleteTopics": {"responses"},
    "DescribeConfigs": {"results", "results.configs"},
    "DescribeGroups": {"groups", "groups.members"},
    "IncrementalAlterConfigs": {"responses"},
    "JoinGroup": {"members"},
    "ListGroups": {"groups"},
    "ListOffsets": {"topics", "topics.partitions"},
    "Metadata": {"brokers", "topics", "topics.partitions"},
    "OffsetCommit": {"topics", "topics.partitions"},
    "OffsetDelete": {"topics", "topics.partitions"},
    "OffsetFetch": {"topics", "topics.partitions", "groups.topics", "groups.topics.partitions"},
    "TxnOffsetCommit": {"topics", "topics.partitions"},
}
"""Lists that have no order of their own, by API and path; Kafka often lists what went wrong first."""

ABSENT: Final = "(absent)"
NO_ANSWER: Final = "(no answer)"
CLOSED: Final = "(connection closed)"
REFUSED: Final = "(refused)"
"""The emulator's answer to a malformed request: over HTTP a 400 that names the problem."""


@dataclass(frozen=True)
class Difference:
    """One thing in which two answers to the same request differ."""

    number: int
    api: str
    version: int
    path: str
    kafka: Any
    other: Any
    request: Any = None
    script: str = ""

    def __str__(self) -> str:
        where = f"{self.number} {self.api} v{self.version} {self.path or 'answer'}"
        return f"{where}: Kafka {self.kafka!r}, not {self.other!r}"


@dataclass(frozen=True)
class RecordedAnswer:
    """An answer and when it came: JSON, or ``CLOSED``."""

    at: int
    body: Any


@dataclass(frozen=True)
class RecordedExchange:
    """A request, and its answer if one came."""

    number: int
    at: int
    client: str
    broker: int
    api: str
    version: int
    request: Json
    answer: RecordedAnswer | None


def exchanges(lines: list[Json]) -> list[RecordedExchange]:
    """The requests of a recording, in order, each with its answer."""
    answers = {
        line["n"]: RecordedAnswer(line["at"], line.get("response", CLOSED))
        for line in lines
        if "n" in line and "request" not in line
    }
    return [
        RecordedExchange(
            line["n"],
            line["at"],
            line["client"],
            line["broker"],
            line["api"],
            line["version"],
            line["request"],
            answers.get(line["n"]),
        )
        for line in lines
        if "request" in line
    ]


def differences(
    asked: RecordedExchange, other: RecordedAnswer | None, *, times: bool = True, script: str = ""
) -> list[Difference]:
    """In what another answer to the same request differs from Kafka's. ``script``: of which recording it is."""
    kafka = asked.answer

    def difference(path: str, ours: Any, theirs: Any) -> Difference:
        return Difference(asked.number, asked.api, asked.version, path, ours, theirs, asked.request, script)

    if kafka is None or other is None:
        if kafka is other:
            return []
        mine, theirs = (NO_ANSWER if answer is None else answer.body for answer in (kafka, other))
        return [difference("", mine, theirs)]
    found = [difference(*one) for one in _compare(asked.api, "", kafka.body, other.body)]
    if times and not other.at - EARLY_MS <= kafka.at <= other.at + LATE_MS:
        found.append(difference("at", kafka.at, other.at))
    return found


def _compare(api: str, path: str, kafka: Any, other: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(other, dict):
        found = []
        for name in {**kafka, **other}:
            below = f"{path}.{name}" if path else name
            found += _compare(api, below, kafka.get(name, ABSENT), other.get(name, ABSENT))
        return found
    if isinstance(kafka, list) and isinstance(other, list):
        if len(kafka) != len(other):
            return [(path, kafka, other)]
        if path in UNORDERED.get(api, ()):
            kafka, other = sorted(kafka, key=_order), sorted(other, key=_order)
        return [one for mine, theirs in zip(kafka, other, strict=True) for one in _compare(api, path, mine, theirs)]
    return [] if kafka == other and type(kafka) is type(other) else [(path, kafka, other)]


def _order(entry: Any) -> str:
    """Entries are put in order by what they are about."""
    if isinstance(entry, dict):
        names = ("memberId", "groupId", "name", "partitionIndex", "apiKey", "nodeId")
        known = [entry[name] for name in names if entry.get(name) is not None]
        if known:
            return json.dumps(known)
    return json.dumps(entry, sort_keys=True)
