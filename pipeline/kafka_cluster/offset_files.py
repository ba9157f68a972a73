"""Offsets that other tools wrote down: tables of kafka-consumer-groups.sh --describe, and scrapes of exporters.

A file has one or several of them, each behind a line with its instant (``date -Is``); one alone may go without, and
is of the time when the file was changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rejoin.pipeline.kafka_cluster.snapshots import NO_OFFSETS, ClusterGroup, ClusterMember, PartitionOffsets
from rejoin.protocol.types import TopicPartition

LARGEST_BYTES: Final = 256 * 2**20
EXPECTED: Final = (
    "expected outputs of kafka-consumer-groups.sh --describe, or scrapes of kafka_exporter, each behind a line with "
    "its time, such as date -Is prints"
)
_INSTANT: Final = re.compile(r"#?\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s*")
_SAMPLE: Final = re.compile(r"(kafka_[a-z_]+)\{(.*)\}\s+(\S+)(?:\s+\d+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')
_OFFSETS: Final = ("kafka_consumergroup_current_offset", "kafka_consumergroup_group_offset")
_ENDS: Final = ("kafka_topic_partition_current_offset", "kafka_partition_latest_offset")
_MISSING: Final = "-"

Partitions = dict[str, dict[TopicPartition, tuple[PartitionOffsets, ClusterMember | None]]]


class BadOffsets(Exception):
    """A file of offsets cannot be read; the text says where and what was expected."""


def snapshots_of_files(paths: Iterable[Path]) -> list[ClusterGroup]:
    """Snapshots of groups in these files, by time. Raises BadOffsets."""
    found = [snapshot for path in paths for snapshot in _of_file(path)]
    return sorted(found, key=lambda snapshot: (snapshot.at_ms, snapshot.group_id))


def has_offsets(path: Path) -> bool:
    """Whether a file begins as one of these do."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            begin = file.read(65_536)
    except OSError:
        return False
    return "CURRENT-OFFSET" in begin or "kafka_consumergroup_" in begin


def _of_file(path: Path) -> Iterator[ClusterGroup]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise BadOffsets(f"{path}: longer than {LARGEST_BYTES >> 20} MiB; {EXPECTED}")
        text = path.read_text(encoding="utf-8", errors="replace")
        changed_at_ms = int(path.stat().st_mtime * 1_000)
    except OSError as problem:
        raise BadOffsets(f"{path}: {(problem.strerror or str(problem)).lower()}; {EXPECTED}") from None
    at_ms: int | None = None
    parts: list[tuple[int | None, int, list[str]]] = [(None, 1, [])]
    for number, line in enumerate(text.splitlines(), 1):
        found = _INSTANT.fullmatch(line)
        if found is None:
            parts[-1][2].append(line)
        else:
            at_ms = _millis(found[1])
            parts.append((at_ms, number, []))
    timed = [part for part in parts if any(line.strip() for line in part[2])]
    for at_ms, number, lines in timed:
        if at_ms is None and len(timed) > 1:
            raise BadOffsets(f"{path}:{number}: offsets without an instant before others that have one; {EXPECTED}")
        yield from _snapshots(path, number, changed_at_ms if at_ms is None else at_ms, lines)


def _snapshots(path: Path, first: int, at_ms: int, lines: list[str]) -> Iterator[ClusterGroup]:
    """The groups of one table or scrape."""
    is_table = any("CURRENT-OFFSET" in line for line in lines)
    found = _of_table(path, first, lines) if is_table else _of_scrape(lines)
    for group_id, partitions in found.items():
        owned: dict[ClusterMember, list[TopicPartition]] = {}
        for partition, (_, member) in sorted(partitions.items()):
            if member is not None:
                owned.setdefault(member, []).append(partition)
        members = tuple(
            ClusterMember(each.member_id, each.group_instance_id, each.client_id, each.client_host, tuple(mine))
            for each, mine in owned.items()
        )
        offsets = {partition: values for partition, (values, _) in sorted(partitions.items())}
        yield ClusterGroup(at_ms, group_id, "Stable" if members else "Empty", members=members, offsets=offsets)


def _of_table(path: Path, first: int, lines: list[str]) -> Partitions:
    found: Partitions = {}
    header: list[str] = []
    for number, line in enumerate(lines, first + 1):
        cells = line.split()
        if "CURRENT-OFFSET" in cells:
            header = cells
            continue
        if not header or len(cells) < len(header):
            continue
        row = dict(zip(header, cells, strict=False))
        if not row["PARTITION"].isdecimal():
            continue
        partition = TopicPartition(row["TOPIC"], int(row["PARTITION"]))
        if partition in found.get(row["GROUP"], ()):
            name = f"{partition.topic}-{partition.partition} of {row['GROUP']}"
            raise BadOffsets(f"{path}:{number}: {name} a second time; {EXPECTED}")
        offsets = PartitionOffsets(_number(row["CURRENT-OFFSET"]), _number(row["LOG-END-OFFSET"]))
        member_id = row.get("CONSUMER-ID", _MISSING)
        member = None
        if member_id != _MISSING:
            member = ClusterMember(member_id, None, row.get("CLIENT-ID"), row.get("HOST"))
        found.setdefault(row["GROUP"], {})[partition] = (offsets, member)
    return found


def _of_scrape(lines: Iterable[str]) -> Partitions:
    """Exporters name no members, or not all do: then each partition of a group with members has an owner of its own."""
    committed: dict[tuple[str, TopicPartition], tuple[int, str | None]] = {}
    ends: dict[TopicPartition, int] = {}
    lags: dict[tuple[str, TopicPartition], int] = {}
    members: dict[str, float] = {}
    for line in lines:
        sample = _SAMPLE.fullmatch(line.strip())
        if sample is None:
            continue
        name, labels, value = sample[1], dict(_LABEL.findall(sample[2])), _value(sample[3])
        group_id = labels.get("consumergroup") or labels.get("group")
        if name == "kafka_consumergroup_members" and group_id:
            members[group_id] = value
        if not labels.get("partition", "").isdecimal() or "topic" not in labels:
            continue
        partition = TopicPartition(labels["topic"], int(labels["partition"]))
        if name in _ENDS:
            ends[partition] = int(value)
        elif name in _OFFSETS and group_id:
            committed[group_id, partition] = int(value), labels.get("client_id") or labels.get("consumer_id")
        elif name in ("kafka_consumergroup_lag", "kafka_consumergroup_group_lag") and group_id:
            lags[group_id, partition] = int(value)
    found: Partitions = {}
    for (group_id, partition), (offset, client) in committed.items():
        lag = lags.get((group_id, partition))
        end = ends.get(partition, None if lag is None else offset + lag)
        name = client or f"the owner of {partition.topic}-{partition.partition}"
        owner = ClusterMember(name, None, name, None) if client or members.get(group_id) else None
        offsets = PartitionOffsets(offset, end) if offset >= 0 else NO_OFFSETS
        found.setdefault(group_id, {})[partition] = (offsets, owner)
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if math.isfinite(value) else -1.0


def _millis(text: str) -> int | None:
    try:
        found: Any = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)
