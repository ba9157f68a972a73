"""Records of each group in the offsets log, with the instants of their writes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final

from rejoin.coordinator.core.effects import Append
from rejoin.protocol.records.consumer_offsets import GroupRecord, OffsetRecord
from rejoin.protocol.records.keyed import KeyedRecord, Record
from rejoin.simulation.disk import key_of
from rejoin.simulation.kernel import Millis
from rejoin.simulation.simulation import Simulation

SHOWN: Final = 6
"""Number of offsets, and of records of other kinds, that are shown; offsets are far more frequent."""


class GroupLog:
    """The records of a run, by group."""

    def __init__(self, simulation: Simulation) -> None:
        self._world = simulation.world
        self._times: dict[str, list[Millis]] = {}
        self._records: dict[str, list[Record]] = {}
        self._offsets: dict[str, list[int]] = {}
        self._others: dict[str, list[int]] = {}
        simulation.disk.on_append.append(self._on_append)

    def _on_append(self, append: Append) -> None:
        for record in append.records:
            if isinstance(record, KeyedRecord):
                group_id = str(key_of(record)[0])
                times = self._times.setdefault(group_id, [])
                kind = self._offsets if isinstance(record, OffsetRecord) else self._others
                kind.setdefault(group_id, []).append(len(times))
                times.append(self._world.now)
                self._records.setdefault(group_id, []).append(record)

    def at(self, group_id: str, instant: Millis) -> dict[str, Any]:
        """How many records of a group there were by an instant, and the last of them: when, which key, what value."""
        times, records = self._times.get(group_id, []), self._records.get(group_id, [])
        offsets, others = self._offsets.get(group_id, []), self._others.get(group_id, [])
        count = bisect_right(times, instant)
        last = sorted(each for kind in (offsets, others) for each in _last(kind, count))
        return {"count": count, "last": [[number, times[number], *_text(records[number])] for number in last]}


def _last(numbers: list[int], count: int) -> list[int]:
    """The last of some records that are among the first ``count`` of all."""
    there = bisect_left(numbers, count)
    return numbers[max(0, there - SHOWN) : there]


def _text(record: Record) -> tuple[str, str]:
    """Key and value of a record for people."""
    assert isinstance(record, KeyedRecord), "markers have no key"
    key, value = record.key.data, None if record.value is None else record.value.data
    if isinstance(record, OffsetRecord):
        name = f"offset {key.topic}-{key.partition}"
        return name, "tombstone" if value is None else str(value.offset)
    if isinstance(record, GroupRecord):
        if value is None:
            return "group", "tombstone"
        members = f"{len(value.members)} member{'s' if len(value.members) != 1 else ''}"
        return "group", f"generation {value.generation}, {value.protocol or 'no protocol'}, {members}"
    name = type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key").removesuffix("Part")
    member = getattr(key, "member_id", "")
    shown = {each: getattr(value, each) for each in ("epoch", "member_epoch", "state") if hasattr(value, each)}
    said = ", ".join(f"{each.replace('_', ' ')} {at}" for each, at in shown.items())
    return f"{name} {member}".strip(), "tombstone" if value is None else said or "stored"
