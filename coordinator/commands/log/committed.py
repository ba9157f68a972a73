"""The committed offsets of an import: which lines replace others, and which offsets a start would delete.

A coordinator that keeps its topics deletes, when it loads a partition, the offsets of topics that do not exist. What
Kafka's console consumer printed names no topics, so all of its offsets would go.
"""

from __future__ import annotations

import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import orjson

from rejoin.coordinator.commands.log.contents import LogProblem, LogRecord, LogSummary, StoredTopicChange, topic_names
from rejoin.coordinator.core.topics.names import TopicError, check_name
from rejoin.coordinator.core.topics.topics import MAX_PARTITIONS
from rejoin.coordinator.storage.topics_log.base import as_text
from rejoin.protocol.records.topics import (
    PartitionData,
    PartitionRecord,
    TopicData,
    TopicRecord,
)
from rejoin.protocol.types import TopicPartition

_SHOWN: Final = 5
_OFFSET_KEYS: Final = (0, 1)


def replaced(records: Iterable[LogRecord]) -> int:
    """How many records a later one of the same key replaces."""
    newest: set[tuple[TopicPartition, str | None]] = set()
    count = 0
    for kept in records:
        if kept.is_transactional:
            continue
        key = (kept.partition, kept.entry.key)
        count += key in newest
        newest.add(key)
    return count


def ends_of_topics(records: Iterable[LogRecord]) -> dict[str, dict[int, int]]:
    """Topic to partition to the highest offset that a group has committed there at the end of a log."""
    committed: dict[str, str | None] = {}
    for kept in records:
        if kept.entry.key is not None:
            committed[kept.entry.key] = kept.entry.value
    ends: dict[str, dict[int, int]] = {}
    for key, value in committed.items():
        parsed = orjson.loads(key)
        if value is None or parsed["version"] not in _OFFSET_KEYS:
            continue
        data = parsed["data"]
        topic = ends.setdefault(data["topic"], {})
        index = data["partition"]
        topic[index] = max(topic.get(index, 0), orjson.loads(value)["data"]["offset"])
    return ends


def without_topic(contents: LogSummary, ends: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
    """Offsets of topics that are missing from the log."""
    there = set(topic_names(contents.topics).values())
    return {topic: partitions for topic, partitions in ends.items() if topic not in there}


def create_topics(contents: LogSummary, missing: dict[str, dict[int, int]]) -> None:
    """Add topics: with as many partitions as offsets name, each as long as the highest offset in it."""
    if not missing:
        return
    now = time.time_ns() // 1_000_000
    records = [record for name, ends in missing.items() for record in _new_topic(name, ends, now)]
    version = contents.topics[-1].version + 1 if contents.topics else 1
    contents.topics.append(StoredTopicChange(version, as_text(tuple(records))))


def _new_topic(name: str, ends: dict[int, int], now: int) -> Iterator[TopicRecord | PartitionRecord]:
    try:
        check_name(name)
    except TopicError as problem:
        raise LogProblem(f"--create-topics: {problem.message}") from None
    count = max(ends) + 1
    if count > MAX_PARTITIONS:
        raise LogProblem(
            f"--create-topics: topic {name} has an offset of partition {count - 1}; expected at most {MAX_PARTITIONS} "
            "partitions"
        )
    topic_id = urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
    yield TopicRecord(data=TopicData(name=name, topic_id=topic_id, records_per_second=0.0))
    for end, alike in groupby(range(count), lambda index: ends.get(index, 0)):
        first, *others = alike
        data = PartitionData(
            topic_id=topic_id, partition_id=first, partitions=1 + len(others), started_at=now, base_offset=end
        )
        yield PartitionRecord(data=data)


def would_be_deleted(missing: dict[str, dict[int, int]]) -> str:
    """Records that a start would delete, in words."""
    topics = sorted(missing)
    shown = ", ".join(topics[:_SHOWN]) + (f" and {len(topics) - _SHOWN} more" if topics[_SHOWN:] else "")
    several = "topics that do not exist" if topics[1:] else "a topic that does not exist"
    return (
        f"a coordinator that starts with this store deletes the committed offsets of {several}: {shown}; "
        "import with --create-topics to keep them"
    )
