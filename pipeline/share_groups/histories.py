"""Deliveries and windows of one share group, from the events of the leaders of its partitions.

A journal may begin or end anywhere: where a delivery's acquisition is not there, its begin is the end less the length
that the event says. Nothing is concluded of a delivery that goes on when the journal ends.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rejoin.pipeline.share_groups.names import OF_ARCHIVED, OF_WINDOWS, TABLES
from rejoin.pipeline.share_groups.sums import sums_of
from rejoin.pipeline.tables.groups.rows import date_of
from rejoin.pipeline.vocabulary import INFERRED

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]
Place = tuple[str, int]
"""Topic and partition."""

ACQUIRED: Final = "share_records_acquired"
ACKNOWLEDGED: Final = "share_records_acknowledged"
EXPIRED: Final = "share_locks_expired"
RELEASED: Final = "share_records_released"
ARCHIVED: Final = "share_records_archived"
DEAD_LETTERED: Final = "share_records_dead_lettered"
LOADED: Final = "share_partition_loaded"
MOVED: Final = "share_window_moved"
FULL: Final = "share_window_full"
FAILED: Final = "share_persister_failed"
INITIALIZED: Final = "share_partitions_initialized"
READ: Final = (
    *(ACQUIRED, ACKNOWLEDGED, EXPIRED, RELEASED, ARCHIVED, DEAD_LETTERED),
    *(LOADED, MOVED, FULL, FAILED, INITIALIZED),
)
"""The events that tables of share groups are made from."""

COLUMNS: Final = (
    *("run_id", "source", "node", "seq", "at_ms", "event", "file", "line", "confidence", "group_id"),
    *("topic", "partition", "partitions", "first_offset", "last_offset", "delivery_count", "member_id", "lock_ms"),
    *("type", "held_ms", "reason", "dead_letter_topic", "error", "start_offset", "end_offset", "in_flight", "limit"),
    *("state_epoch", "leader_epoch", "reset", "skipped_records", "operation"),
)
"""Columns of these events that are read."""

NEXT_FETCH_WITHIN_MS: Final = 600_000
"""A member that acquires nothing for longer does not come back from the handler."""
LOCK_EXPIRED: Final = "lock-expired"
LEADER_CHANGED: Final = "leader-changed"
UNKNOWN: Final = "unknown"
_ENDS: Final[dict[str, Callable[[Row], str]]] = {
    ACKNOWLEDGED: lambda row: row["type"],
    EXPIRED: lambda _: LOCK_EXPIRED,
    RELEASED: lambda row: row["reason"],
    ARCHIVED: lambda _: "archived",
}


@dataclass(slots=True, order=True)
class ShareDelivery:
    """A run of records in the hands of one member, from its acquisition to its end."""

    first: int
    last: int
    begun: Row | None = field(compare=False)
    ended: Row | None = field(default=None, compare=False)
    end: str | None = field(default=None, compare=False)
    renewals: int = field(default=0, compare=False)
    next_fetch_at_ms: int | None = field(default=None, compare=False)

    @property
    def acquired_at_ms(self) -> int | None:
        if self.begun is not None:
            return int(self.begun["at_ms"])
        held_ms = self.ended["held_ms"] if self.ended is not None else None
        return None if held_ms is None or self.ended is None else int(self.ended["at_ms"] - held_ms)

    def is_settled(self, before_ms: int) -> bool:
        """True if no later event changes the row."""
        if self.ended is None or self.ended["at_ms"] >= before_ms:
            return False
        awaits_fetch = self.next_fetch_at_ms is None and self.begun is not None and self.end == LOCK_EXPIRED
        return not awaits_fetch or (self.acquired_at_ms or 0) + NEXT_FETCH_WITHIN_MS < before_ms


@dataclass(frozen=True, slots=True)
class WindowState:
    """The window of a share-partition: its start, since when that stands with records in flight, its end then."""

    start: int
    since_ms: int | None = None
    end_then: int | None = None
    end: int | None = None


class ShareGroupHistory:
    """Takes in the events of one share group in one run, in order."""

    def __init__(
        self, run_id: str, group_id: str, ends_at_ms: int, windows: Mapping[Place, WindowState] | None = None
    ) -> None:
        """``windows``: as they were before the first event, as far as that is known."""
        self._key = {"run_id": run_id, "group_id": group_id}
        self._ends_at_ms = ends_at_ms
        self.deliveries: list[ShareDelivery] = []
        self.windows: dict[Place, WindowState] = dict(windows or {})
        self._held: dict[Place, list[ShareDelivery]] = defaultdict(list)
        self._returns: dict[str, list[ShareDelivery]] = defaultdict(list)
        """Deliveries of each member whose next fetch is not known."""
        self._archived: Rows = []
        self._window_rows: Rows = []

    def take(self, row: Row) -> None:
        """Take in one event."""
        event = row["event"]
        if event == INITIALIZED:
            self._not_initialized(row)
        elif event == ACQUIRED:
            self._acquired(row)
        elif event in _ENDS:
            self._ended(row)
        if event in (ARCHIVED, DEAD_LETTERED):
            records = row["last_offset"] - row["first_offset"] + 1
            self._archived.append(_picked(row, OF_ARCHIVED) | {"records": records})
        elif event in (LOADED, MOVED, FULL, FAILED):
            self._window(row)

    # -- deliveries

    def _acquired(self, row: Row) -> None:
        place, member = _place(row), row["member_id"]
        for each in self._returns.pop(member, ()):
            if (each.acquired_at_ms or 0) == row["at_ms"]:
                self._returns[member].append(each)
            elif row["at_ms"] - (each.acquired_at_ms or 0) <= NEXT_FETCH_WITHIN_MS:
                each.next_fetch_at_ms = row["at_ms"]
        for each in self._cut(place, row["first_offset"], row["last_offset"]):
            self._end(place, each, row, UNKNOWN)
        delivery = ShareDelivery(row["first_offset"], row["last_offset"], row)
        self.deliveries.append(delivery)
        self._returns[member].append(delivery)
        insort(self._held[place], delivery)

    def _ended(self, row: Row) -> None:
        """End deliveries of these records: parts of runs are cut off; what was not seen acquired has no begin."""
        place, first, last = _place(row), row["first_offset"], row["last_offset"]
        end = _ENDS[row["event"]](row)
        at = first
        for each in self._cut(place, first, last):
            if each.first > at and row["event"] != ARCHIVED:
                self._unseen(row, at, each.first - 1, end)
            at = each.last + 1
            if end == "renew":
                each.renewals += 1
            else:
                self._end(place, each, row, end)
        if at <= last and row["event"] != ARCHIVED:
            self._unseen(row, at, last, end)

    def _end(self, place: Place, delivery: ShareDelivery, row: Row, end: str) -> None:
        delivery.ended, delivery.end = row, end
        self._held[place].remove(delivery)

    def _cut(self, place: Place, first: int, last: int) -> list[ShareDelivery]:
        """The held runs within some offsets; those that go beyond are cut into parts."""
        within, parts = [], []
        held = self._held[place]
        at = bisect_right(held, first, key=lambda each: each.first)
        at -= at > 0 and held[at - 1].last >= first
        until = bisect_right(held, last, key=lambda each: each.first)
        for each in held[at:until]:
            for begin, end in ((each.first, first - 1), (last + 1, each.last)):
                if begin <= end:
                    part = replace(each, first=begin, last=end)
                    self.deliveries.append(part)
                    parts.append(part)
                    if each.begun is not None and each.next_fetch_at_ms is None:
                        self._returns[each.begun["member_id"]].append(part)
            each.first, each.last = max(each.first, first), min(each.last, last)
            within.append(each)
        for part in parts:
            insort(held, part)
        return within

    def _unseen(self, row: Row, first: int, last: int, end: str) -> None:
        if end != "renew":
            self.deliveries.append(ShareDelivery(first, last, None, row, end))

    # -- windows

    def _window(self, row: Row) -> None:
        event, at_ms = row["event"], row["at_ms"]
        made = _picked(row, OF_WINDOWS)
        self._window_rows.append(made)
        if row["topic"] is None or event == FAILED:
            return
        place = _place(row)
        if event == LOADED:
            for each in self._held.pop(place, ()):
                each.ended, each.end = row, LEADER_CHANGED
            if row["start_offset"] is not None:
                self.windows[place] = WindowState(row["start_offset"])
        elif event == MOVED:
            start, end, before = row["start_offset"], row["end_offset"], self.windows.get(place)
            stood = before is not None and before.since_ms is not None
            if before is not None and before.since_ms is not None and before.start != start:
                grown = (before.end or 0) - (before.end_then or 0)
                made |= {"stood_ms": at_ms - before.since_ms, "stood_at": before.start, "grown": grown}
            if not row["in_flight"]:
                self.windows[place] = WindowState(start)
            elif before is not None and stood and before.start == start:
                self.windows[place] = replace(before, end=end)
            else:
                self.windows[place] = WindowState(start, at_ms, end, end)
            made["start_since_ms"] = self.windows[place].since_ms
        elif place in self.windows:
            made["start_since_ms"] = self.windows[place].since_ms

    def _not_initialized(self, row: Row) -> None:
        if row["error"] is None:
            return
        for each in row["partitions"] or ():
            made = _picked(row, OF_WINDOWS)
            self._window_rows.append(made | {"topic": each["topic"], "partition": each["partition"]})

    # -- rows

    def tables(self) -> dict[str, Rows]:
        """All tables, as rows."""
        made = {
            "share_deliveries": sorted(map(self.row_of, self.deliveries), key=begin_of),
            "share_archived": self._archived,
            "share_windows": self._window_rows,
        }
        return made | {"share_partitions": sums_of(made, self.standing())}

    def standing(self) -> dict[Place, tuple[int, int, int]]:
        """Starts that stand when the run ends: since when, for how long, and how far the ends have moved."""
        return {
            place: (each.since_ms, self._ends_at_ms - each.since_ms, (each.end or 0) - (each.end_then or 0))
            for place, each in self.windows.items()
            if each.since_ms is not None
        }

    def row_of(self, delivery: ShareDelivery) -> dict[str, Any]:
        """The row of a delivery."""
        known = delivery.begun or delivery.ended
        assert known is not None, "a delivery has begun or ended"
        begin, ended = delivery.acquired_at_ms, delivery.ended
        until_ms = self._ends_at_ms if ended is None else ended["at_ms"]
        said = None if ended is None or ended["event"] not in _ENDS else ended["held_ms"]
        length_ms = None if begin is None else until_ms - begin
        fetched_at_ms = delivery.next_fetch_at_ms if delivery.end == LOCK_EXPIRED else None
        return self._key | {
            "day": date_of(known["at_ms"] if begin is None else begin),
            **{name: known[name] for name in ("topic", "partition", "member_id", "delivery_count")},
            "first_offset": delivery.first,
            "last_offset": delivery.last,
            "records": delivery.last - delivery.first + 1,
            "acquired_at_ms": begin,
            "ended_at_ms": None if ended is None else ended["at_ms"],
            "end": delivery.end,
            "held_ms": length_ms if said is None else said,
            "lock_ms": None if delivery.begun is None else delivery.begun["lock_ms"],
            "renewals": delivery.renewals,
            "next_fetch_ms": None if fetched_at_ms is None or begin is None else fetched_at_ms - begin,
            "confidence": known["confidence"] if delivery.end not in (LEADER_CHANGED, UNKNOWN) else INFERRED,
            **{name: known[name] for name in ("source", "node", "seq", "file", "line")},
        }


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Events in the order in which a group's history takes them in."""
    return sorted(rows, key=lambda row: (row["at_ms"], row["source"], row["node"] or "", row["seq"]))


def histories(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> Iterator[ShareGroupHistory]:
    """The history of each share group of each run."""
    by_group: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in in_order(rows):
        by_group[row["run_id"], row["group_id"]].append(row)
    for (run_id, group_id), ours in sorted(by_group.items()):
        history = ShareGroupHistory(run_id, group_id, ends_at_ms[run_id])
        for row in ours:
            history.take(row)
        yield history


def tables_of(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> dict[str, Rows]:
    """All tables of share groups, as rows."""
    made: dict[str, Rows] = {name: [] for name in TABLES}
    for history in histories(rows, ends_at_ms):
        for name, found in history.tables().items():
            made[name] += found
    return made


def begin_of(row: Row) -> tuple[int, str, int, int]:
    """The key by which deliveries are in order."""
    at_ms = row["ended_at_ms"] if row["acquired_at_ms"] is None else row["acquired_at_ms"]
    return at_ms, row["topic"], row["partition"], row["first_offset"]


def _place(row: Row) -> Place:
    return row["topic"], row["partition"]


def _picked(row: Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row.get(name) for name in names} | {"day": date_of(row["at_ms"])}
