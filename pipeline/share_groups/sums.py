"""Sums of share-partitions, from rows of the other tables; sums of two parts of a journal can be put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.share_groups.names import OF_PARTITIONS, SUMMED
from rejoin.pipeline.vocabulary import EXACT, INFERRED

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]
Key = tuple[str, str, str, int]
"""Run, group, topic and partition."""

_ENDS: Final = {
    "accept": "accepted",
    "release": "released",
    "reject": "rejected",
    "lock-expired": "expired",
    **dict.fromkeys(("session-closed", "disconnected", "session-evicted", "leader-changed"), "given_back"),
}
_NEWEST: Final = ("start_offset", "end_offset", "in_flight")
_STANDING: Final = ("standing_since_ms", "standing_ms", "grown")
_LARGEST: Final = ("last_at_ms", "most_deliveries", "longest_held_ms", "longest_stood_ms")


def sums_of(
    tables: Mapping[str, Sequence[Row]], standing: Mapping[tuple[str, int], tuple[int, int, int]] | None = None
) -> Rows:
    """Rows of ``share_partitions``, from rows of the other tables in the order of their times.

    ``standing``: since when starts stand at the end, for how long (ms), and by how many records windows grew meanwhile.
    """
    sums: dict[Key, dict[str, Any]] = {}
    for row in tables["share_deliveries"]:
        found = _sum(sums, row, row["acquired_at_ms"] if row["acquired_at_ms"] is not None else row["ended_at_ms"])
        found["acquired"] += row["records"]
        if row["end"] in _ENDS:
            found[_ENDS[row["end"]]] += row["records"]
        _raise(found, "most_deliveries", row["delivery_count"])
        _raise(found, "longest_held_ms", row["held_ms"])
        _raise(found, "last_at_ms", row["ended_at_ms"])
    for row in tables["share_archived"]:
        found = _sum(sums, row, row["at_ms"])
        if row["event"] == "share_records_archived":
            found["archived"] += row["records"] if row["reason"] not in ("gap", "compacted", "aborted") else 0
        else:
            found["dead_lettered" if row["error"] is None else "dead_letters_failed"] += row["records"]
    for row in tables["share_windows"]:
        if row["topic"] is None:
            continue
        found = _sum(sums, row, row["at_ms"])
        found["full"] += row["event"] == "share_window_full"
        found["failures"] += row["event"] == "share_persister_failed"
        _raise(found, "longest_stood_ms", row["stood_ms"])
        found |= {name: row[name] for name in _NEWEST if row[name] is not None}
    for key, row in sums.items():
        row.update(standing_in(standing or {}, key[2:]))
    return [sums[key] for key in sorted(sums)]


def standing_in(
    standing: Mapping[tuple[str, int], tuple[int, int, int]], place: tuple[str, int]
) -> dict[str, int | None]:
    """Columns of a share-partition about a start that stands."""
    return dict(zip(_STANDING, standing.get(place, (None, None, None)), strict=True))


def together(before: Row | None, after: Row) -> dict[str, Any]:
    """A row of ``share_partitions`` for two parts of a journal, of which the second may reach into the first's time."""
    if before is None:
        return dict(after)
    made = dict(after)
    made |= {name: before[name] + after[name] for name in SUMMED}
    made |= {name: after[name] if after[name] is not None else before[name] for name in _NEWEST}
    for name in _LARGEST:
        _raise(made, name, before[name])
    if before["first_at_ms"] <= after["first_at_ms"]:
        made |= {name: before[name] for name in ("first_at_ms", "day")}
    made["confidence"] = EXACT if before["confidence"] == after["confidence"] == EXACT else INFERRED
    return made


def _sum(sums: dict[Key, dict[str, Any]], row: Row, at_ms: int) -> dict[str, Any]:
    key = row["run_id"], row["group_id"], row["topic"], row["partition"]
    found = sums.get(key)
    if found is None:
        names = ("run_id", "group_id", "topic", "partition", "day")
        found = sums[key] = dict.fromkeys(OF_PARTITIONS) | dict.fromkeys(SUMMED, 0)
        found |= {name: row[name] for name in names} | {"first_at_ms": at_ms, "last_at_ms": at_ms, "confidence": EXACT}
    if at_ms < found["first_at_ms"]:
        found |= {"first_at_ms": at_ms, "day": row["day"]}
    _raise(found, "last_at_ms", at_ms)
    if row["confidence"] != EXACT:
        found["confidence"] = INFERRED
    return found


def _raise(row: dict[str, Any], name: str, value: int | None) -> None:
    if value is not None and (row[name] is None or value > row[name]):
        row[name] = value
