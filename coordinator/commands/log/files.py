"""Logs as text: exports with one JSON object per line, and the output of Kafka's console consumer.

The first line of an export names its format. The last line has the number of records and a checksum, so that truncation
is detected. Between them are the epochs, the topics and the records, in order for each partition. Kafka's console
consumer prints objects with a key and a value; newer versions print no line end between them. It does not print the
offsets partition, which follows from the group.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import orjson

from rejoin.coordinator.commands.log.contents import (
    LogNotRead,
    LogProblem,
    LogRecord,
    LogSummary,
    StoredTopicChange,
    problem_of,
)
from rejoin.coordinator.storage.codec import PLAIN, Entry
from rejoin.coordinator.storage.topics_log.base import changed
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.printable import printable_json
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.table import RECORD_TYPES
from rejoin.protocol.types import TopicPartition

FORMAT: Final = "rejoin-offsets-log"
VERSION: Final = 2
"""Version 1 had no topics: every record belonged to the offsets topic."""
_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_SHOWN: Final = 60


def write(out: TextIO, contents: LogSummary, records: Iterable[LogRecord]) -> int:
    """Write an export. Returns the number of records."""
    crc = count = 0

    def line(text: str) -> None:
        nonlocal crc
        text = printable_json(text)
        crc = zlib.crc32(text.encode(), crc)
        out.write(text + "\n")

    line(_dumped({"format": FORMAT, "version": VERSION}))
    for partition, epoch in sorted(contents.epochs.items()):
        line(_dumped({"topic": partition.topic, "partition": partition.partition, "newestEpoch": epoch}))
    for change in contents.topics:
        line(f'{{"topicsVersion":{change.version},"topics":{change.record}}}')
    for kept in records:
        count += 1
        line(_line(kept))
    out.write(_dumped({"end": True, "records": count, "checksum": crc}) + "\n")
    return count


def _line(kept: LogRecord) -> str:
    key, value = kept.entry.key or "null", kept.entry.value or "null"
    producer = f',"producerId":{kept.entry.producer_id}' if kept.is_transactional else ""
    where = f'"topic":{_dumped(kept.partition.topic)},"partition":{kept.partition.partition}'
    return f'{{{where},"epoch":{kept.epoch}{producer},"key":{key},"value":{value}}}'


_EXPECTED: Final = "a JSON object on each line, as rejoin log export and Kafka's console consumer write them"


class TextLog:
    """A file, or standard input for ``-``: an export, or the output of a console consumer."""

    def __init__(self, path: str, partitions: int) -> None:
        self.name = "standard input" if path == "-" else path
        self.contents = LogSummary()
        self.skipped = 0
        try:
            text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            why = getattr(problem, "strerror", None) or problem
            raise LogNotRead(f"{self.name} cannot be read: {why}; expected a file of log export") from problem
        first = text.partition("\n")[0]
        is_export = f'"format":"{FORMAT}"' in first
        self._records = list(self._export(text) if is_export else self._printed(text, partitions))

    def records(self, wanted: frozenset[TopicPartition] | None = None) -> Iterator[LogRecord]:
        """The records of some partitions, or of all."""
        return (kept for kept in self._records if wanted is None or kept.partition in wanted)

    def _export(self, text: str) -> Iterator[LogRecord]:
        crc = count = 0
        ended = False
        for number, line in enumerate(text.split("\n"), 1):
            if not line:
                continue
            if ended:
                raise self._wrong(number, "there is more text after the last line of the export")
            fields = self._parsed(line, number)
            if fields.get("end") is True:
                if (fields.get("records"), fields.get("checksum")) != (count, crc):
                    raise self._wrong(number, "the checksum does not fit the lines before")
                ended = True
                continue
            crc = zlib.crc32(line.encode(), crc)
            if "format" in fields:
                if fields.get("version") not in range(1, VERSION + 1):
                    raise self._wrong(number, f"expected version {VERSION} or older, found {fields.get('version')}")
            elif "newestEpoch" in fields:
                self.contents.epochs[self._partition(fields, number)] = self._number(
                    fields, "newestEpoch", number, _INT32
                )
            elif "topics" in fields:
                self.contents.topics.append(self._topics(fields, number))
            else:
                count += 1
                yield self._kept(fields, number)
        if not ended:
            raise LogProblem(f"{self.name} is cut off: its last line is missing; expected a whole file of log export")

    def _topics(self, fields: dict[str, Any], number: int) -> StoredTopicChange:
        change = StoredTopicChange(self._number(fields, "topicsVersion", number, _INT64), _dumped(fields["topics"]))
        newest = self.contents.topics[-1].version if self.contents.topics else 0
        if change.version <= newest:
            raise self._wrong(number, f"expected a version of the topics after {newest}, found {change.version}")
        try:
            is_whole = changed(change.version - 1, [(change.version, change.record)]).whole
        except (ValueError, KeyError) as problem:
            raise self._wrong(number, f"these are no topics: {str(problem).splitlines()[0]}") from None
        # A salvaged log may have gaps, and a node starts with none. What has everything may begin anywhere.
        return change if is_whole else change._replace(version=newest + 1)

    def _kept(self, fields: dict[str, Any], number: int) -> LogRecord:
        try:
            key, value = (None if fields[name] is None else _dumped(fields[name]) for name in ("key", "value"))
        except KeyError as problem:
            raise self._wrong(number, f"{problem} is missing") from None
        except TypeError as problem:
            raise self._wrong(number, f"it is no record: {problem}") from None
        producer_id = self._number({"producerId": PLAIN, **fields}, "producerId", number, _INT64)
        epoch = self._number(fields, "epoch", number, _INT32)
        kept = LogRecord(self._partition(fields, number), epoch, Entry(producer_id, key, value))
        found = problem_of(kept)
        if found is not None:
            raise self._wrong(number, found)
        return kept

    def _partition(self, fields: dict[str, Any], number: int) -> TopicPartition:
        topic = fields.get("topic", OFFSETS_TOPIC)
        if topic not in RECORD_TYPES:
            raise self._wrong(number, f"expected topic {' or '.join(RECORD_TYPES)}, found {_shown(topic)}")
        return TopicPartition(topic, self._number(fields, "partition", number, _INT32))

    def _number(self, fields: dict[str, Any], name: str, number: int, most: int) -> int:
        try:
            found = fields[name]
        except KeyError:
            raise self._wrong(number, f"{name!r} is missing") from None
        least = PLAIN if name == "producerId" else 0
        if type(found) is not int or not least <= found <= most:
            raise self._wrong(number, f"expected a whole number up to {most} as {name}, found {_shown(found)}")
        return found

    def _printed(self, text: str, partitions: int) -> Iterator[LogRecord]:
        # The output does not have the number of partitions, and a cluster refuses to start with fewer than configured.
        self.contents.epochs = dict.fromkeys(map(offsets_partition, range(partitions)), 0)
        decoder = json.JSONDecoder()
        at = 0
        while (at := _next(text, at)) < len(text):
            number = text.count("\n", 0, at) + 1
            try:
                fields, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                raise self._wrong(number, f"not JSON; expected {_EXPECTED}") from None
            if not isinstance(fields, dict) or "key" not in fields or "value" not in fields:
                raise self._wrong(number, "expected an object with key and value, as Kafka's formatters print them")
            key = fields["key"]
            # Kafka: CoordinatorRecordMessageFormatter. Since 4.1 the number of a key is its type.
            version = key.pop("type", key.pop("version", None)) if isinstance(key, dict) else None
            if (
                not isinstance(key, dict)
                or not isinstance(key.get("data"), dict)
                or not isinstance(version, int)
                or version not in RECORD_TYPES[OFFSETS_TOPIC]
            ):
                self.skipped += 1  # a record of another kind of group
                continue
            group = key["data"].get("group", key["data"].get("groupId", ""))
            if not isinstance(group, str):
                raise self._wrong(number, f"expected the name of a group, found {_shown(group)}")
            fields["key"] = {"version": version, **key}
            placed = {"partition": partition_for(group, partitions), "epoch": 0, **fields}
            yield self._kept(placed, number)

    def _parsed(self, line: str, number: int) -> dict[str, Any]:
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise self._wrong(number, f"not JSON; expected {_EXPECTED}") from None
        if not isinstance(fields, dict):
            raise self._wrong(number, "expected an object")
        return fields

    def _wrong(self, number: int, text: str) -> LogProblem:
        return LogProblem(f"{self.name}:{number}: {text}")


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _dumped(fields: Any) -> str:
    return orjson.dumps(fields).decode()


def _shown(value: Any) -> str:
    """A value for a message, cut short."""
    return repr(value)[:_SHOWN]
