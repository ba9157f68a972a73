"""A report as plain values: collected from the tables once, small enough for one page.

Instants are ms as in the tables. Rows of tables are mappings with the names of the columns.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rejoin.pipeline.findings.formatting import count, is_simulated, seconds
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.vocabulary import INFERRED, is_untimed

Row = Mapping[str, Any]
Ints = npt.NDArray[np.int64]

MOST_INTERVALS: Final = 250_000
"""Intervals of ownership that a page holds; above it, the shortest gaps between two turns of one owner are closed."""
LEAST_MS: Final = 60_000
"""A group that was seen for less is weighed as if it had been seen for so long."""
SHOWN_FROM_S: Final = 0.1
"""Costs of less are not shown: what matters of such a finding is how often it comes."""
FINEST: Final = 8_192
"""The first closing of gaps is by this part of the whole time."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Who owned which row when: one entry each in four columns, sorted by row and beginning."""

    row: Ints
    owner: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]]) -> Intervals:
        """From (row, owner, start, end), in any order."""
        columns = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        columns = columns[np.lexsort((columns[:, 3], columns[:, 2], columns[:, 0]))]
        return cls(*(columns[:, number] for number in range(4)))

    def merged(self, gap_ms: int) -> Intervals:
        """With intervals of one owner drawn together where at most so much time lies between them.

        Only neighbours are: if another owner had the row in between, both remain.
        """
        if not len(self):
            return self
        joins = np.zeros(len(self), dtype=bool)
        joins[1:] = (
            (self.row[1:] == self.row[:-1])
            & (self.owner[1:] == self.owner[:-1])
            & (self.start[1:] - self.end[:-1] <= gap_ms)
        )
        first = np.flatnonzero(~joins)
        return Intervals(self.row[first], self.owner[first], self.start[first], np.maximum.reduceat(self.end, first))

    def reduced(self, most: int = MOST_INTERVALS) -> tuple[Intervals, int]:
        """At most about so many, and the length of the gaps that were closed for it (0: none was)."""
        found, gap = self.merged(0), 0
        if not len(found):
            return found, 0
        span = max(1, int(found.end.max() - found.start.min()))
        closed = max(1, span // FINEST)
        while len(found) > most and closed < span:
            found, gap = found.merged(closed), closed
            closed *= 2
        return found, gap

    def encoded(self, begin_ms: int) -> str:
        """As the page reads it: varints (LEB128) in base64, four for each: row less the row before, owner, start less
        the end before in the same row (zigzag; of the first, less the beginning of the chart), length."""
        if not len(self):
            return ""
        step = np.diff(self.row, prepend=0)
        fresh = np.ones(len(self), dtype=bool)
        fresh[1:] = self.row[1:] != self.row[:-1]
        before = np.where(fresh, begin_ms, np.concatenate(([begin_ms], self.end[:-1])))
        away = self.start - before
        zigzag = np.where(away < 0, -2 * away - 1, 2 * away)
        numbers = np.stack([step, self.owner, zigzag, self.end - self.start], axis=1).ravel()
        return b64encode(varints(numbers)).decode("ascii")


def varints(numbers: Ints) -> bytes:
    """Non-negative numbers as LEB128, one behind the other."""
    rest = numbers.astype(np.uint64)
    size = np.ones(len(rest), dtype=np.int64)
    for bits in range(7, 64, 7):
        size += (rest >> np.uint64(bits)) > 0
    ends = np.cumsum(size)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    begins = ends - size
    for place in range(int(size.max()) if len(size) else 0):
        there = size > place
        byte = (rest[there] >> np.uint64(7 * place)) & np.uint64(0x7F)
        more = np.where(size[there] > place + 1, np.uint64(0x80), np.uint64(0))
        out[begins[there] + place] = (byte | more).astype(np.uint8)
    return out.tobytes()


@dataclass(frozen=True, slots=True)
class ShareGroupReport:
    """The records of a share group: rows of its tables, by time."""

    partitions: Sequence[Row]
    windows: Sequence[Row]
    """Rows of share_windows."""
    deliveries: Sequence[Row]
    late: Sequence[Row]
    """Deliveries that came again or did not end well, the most often delivered first."""


@dataclass(frozen=True, slots=True)
class StreamsGroupReport:
    """The tasks of a streams group: rows of its tables, by time."""

    tasks: Sequence[Row]
    moves: Sequence[Row]
    """Rows of task_moves."""
    restores: Sequence[Row]
    changes: Sequence[Row]
    """Rows of streams_changes."""


@dataclass(slots=True)
class GroupReport:
    """One group of one run."""

    run_id: str
    group_id: str
    from_ms: int
    to_ms: int
    rebalances: Sequence[Row] = ()
    """Of the table, with ``stopped_ms`` and ``stopped`` (consumers) added, by time."""
    findings: Sequence[Row] = ()
    violations: Sequence[Row] = ()
    after_removal: Sequence[Row] = ()
    """No violations: members that were removed went on beside their successors until they noticed."""
    annotations: Sequence[tuple[int, str]] = ()
    """Annotations: instants with texts."""
    drawn: tuple[str, int] | None = None
    """Its name on the page that is stepped through, and where time begins there (ms)."""
    owners: Sequence[str] = ()
    partitions: Sequence[tuple[str, int, int]] = ()
    """Topic and partition of each row of the chart, and since when it is expected to have an owner."""
    owned: Intervals = field(default_factory=lambda: Intervals.of(()))
    closed_ms: int = 0
    """Gaps between two turns of one owner that were this short were closed, to have fewer intervals."""
    members: Sequence[str] = ()
    """Where owners are not known: who was in the group, by their first session."""
    sessions: Sequence[tuple[int, int, int, str]] = ()
    """Row of a member, from, to, and how the session ended."""
    overlaps: Sequence[tuple[int, int, int]] = ()
    """Row, from, to: owned by two at a time."""
    stops: Sequence[tuple[int, int, int]] = ()
    """Instant, consumers that wait for an assignment from then on, how many of them own nothing."""
    pauses: Sequence[Row] = ()
    """By consumer: ``owner, pauses, stopped_ms, longest_ms, incremental``; the longest sum first."""
    lag: Sequence[tuple[int, int]] = ()
    """Instant, lag of all partitions as far as commits show it."""
    balance: Sequence[Row] = ()
    requests: Sequence[Row] = ()
    measured: Sequence[Row] = ()
    """Rows of the table client_metrics, by time."""
    shares: ShareGroupReport | None = None
    """Of a share group alone."""
    streams: StreamsGroupReport | None = None
    """Of a streams group alone."""
    counts: Row = field(default_factory=dict)
    """``members`` (the most at a time), ``duplicates``, ``lost`` records where that is known, ``sources``."""

    @property
    def inferred(self) -> int:
        """How many of its rebalances no line states."""
        return sum(row.get("confidence") == INFERRED for row in self.rebalances)

    @property
    def is_untimed(self) -> bool:
        """Whether instants are numbers of lines: no length is known then."""
        return is_untimed(self.from_ms)

    @property
    def seen_ms(self) -> int:
        """For how long it was seen, where costs of groups are compared."""
        return max(LEAST_MS, self.to_ms - self.from_ms)

    @property
    def stopped_ms(self) -> int:
        """Consumers that owned nothing, summed up: in rebalances, or else in pauses of which no rebalance is known."""
        if self.is_untimed:
            return 0
        in_rebalances = sum(int(row.get("stopped_ms") or 0) for row in self.rebalances)
        return in_rebalances or sum(int(row.get("stopped_ms") or 0) for row in self.pauses)


@dataclass(slots=True)
class LogChart:
    """The last stable offset of one log against its end."""

    topic: str
    partition: int
    samples: Sequence[Row]
    """Of the table stable_offsets, by time."""
    spans: Sequence[Row]
    """Transactions that were open in the log: ``opened_at_ms``, ``marker_at_ms``, ``length_ms``, ``outcome`` ..."""
    held_ms: int
    """The longest of them."""


@dataclass(slots=True)
class TransactionsReport:
    """The transactions of one run."""

    run_id: str
    from_ms: int
    to_ms: int
    producers: Sequence[Row]
    findings: Sequence[Row]
    violations: Sequence[Row]
    logs: Sequence[LogChart] = ()
    more_logs: int = 0


@dataclass(slots=True)
class Report:
    """All of it."""

    title: str
    groups: Sequence[GroupReport] = ()
    """Groups with a chart, the worst first."""
    others: Sequence[Row] = ()
    """Groups without one: ``run_id, group_id, rebalances, findings, worst``."""
    streams: Sequence[Row] = ()
    quarantine_kinds: Sequence[tuple[str, int]] = ()
    quarantine: Sequence[Row] = ()
    """The first lines of the quarantine."""
    rows_read: int = 0
    files: int = 0
    """Number of files that were read."""
    unread: Sequence[InputFile] = ()
    """Files that could not be read."""
    silent: Sequence[str] = ()
    """Files that could be read and have nothing about a group."""
    coverage: Sequence[str] = ()
    """How much of logs was used, and what was concluded about them."""
    made: str = ""
    """The page's foot: the command that made it, and the folder of the tables."""
    transactions: Sequence[TransactionsReport] = ()
    """One for each run with producers."""
    readers: Sequence[Row] = ()
    """Rows of the table readers."""

    @property
    def parts(self) -> list[GroupReport | TransactionsReport]:
        """All that has findings and violations."""
        return [*self.groups, *self.transactions]

    @property
    def rebalances(self) -> int:
        """Of all groups, with a chart or without."""
        charted = sum(len(group.rebalances) for group in self.groups)
        return charted + sum(int(row["rebalances"]) for row in self.others)

    @property
    def has_times_of_the_world(self) -> bool:
        """Whether times are of some day, and not counted from the start of a simulation."""
        return any(not is_simulated(each.from_ms) for each in self.parts)

    @property
    def quarantined(self) -> int:
        return sum(number for _, number in self.quarantine_kinds)


def unread_files(report: Report) -> str | None:
    """Which files could not be read, and why; none where all were."""
    if not report.unread:
        return None
    of_all = f"{len(report.unread):,} of {count(report.files + len(report.unread), 'file')} could not be read: "
    names = ", ".join(f"{Path(each.path).name} ({each.reason})" for each in report.unread[:3])
    return of_all + names + (f" and {len(report.unread) - 3:,} more" if report.unread[3:] else "")


def silent_files(report: Report) -> str | None:
    """Which files say nothing about a group; none where all do."""
    if not report.silent:
        return None
    of_all = f"{len(report.silent):,} of {count(report.files, 'file')} contain nothing about a group: "
    names = ", ".join(Path(each).name for each in report.silent[:MOST_SILENT])
    return of_all + names + (f" and {len(report.silent) - MOST_SILENT:,} more" if report.silent[MOST_SILENT:] else "")


MOST_SILENT: Final = 10
"""Files without a group that are named; the page has all."""

# --- overlaps that Kafka allows: members that were removed went on beside their successors until they noticed

SLACK_MS: Final = 10_000
"""Successors get their partitions so long after what a finding is about."""
_EXPLAIN: Final = (
    *("max-poll-exceeded", "session-too-short", "duplicate-instance-id", "stuck-reconciliation", "flapping-member"),
    *("rolling-restart", "coordinator-failover", "died-without-leaving", "fell-silent"),
)
"""Findings about members that were removed."""


def why_after_removal(group: GroupReport) -> str:
    """Explanation of these overlaps, with the findings that cause them."""
    titles = "; ".join(f'"{row["title"]}"' for row in group.findings if _explains(group, row))
    return (
        "These are no violations: in Kafka, too, a member that was removed goes on with its partitions until it "
        "notices, with its next heartbeat or poll. What it processes meanwhile is processed twice, and its commits are "
        "refused." + (f" Why it was removed: see {titles}." if titles else "")
    )


def count_after_removal(groups: Iterable[GroupReport]) -> str:
    """A line for the terminal; empty if there are none."""
    number = sum(len(each.after_removal) for each in groups)
    often = count(number, "time")
    return (
        f"{often} a partition had two owners, as in Kafka, until a removed member noticed: see the page"
        if number
        else ""
    )


def _explains(group: GroupReport, finding: Row) -> bool:
    from_ms, to_ms = finding["from_ms"], finding["to_ms"]
    if finding["finding"] not in _EXPLAIN or from_ms is None or to_ms is None:
        return False
    return any(from_ms <= row["at_ms"] <= to_ms + SLACK_MS for row in group.after_removal)


# --- names


def naming(report: Report) -> Callable[[GroupReport], str] | None:
    """The function that names groups: None if there is one group; with the run's id if there are several runs."""
    if len(report.groups) < 2:
        return None
    runs = len({group.run_id for group in report.groups})
    return lambda group: f"{group.group_id} in {group.run_id}" if runs > 1 else group.group_id


def in_order(report: Report) -> list[tuple[GroupReport, Row]]:
    """All findings of all groups, and about transactions, the worst first by its cost an hour."""
    found = [(group, row) for group in report.groups for row in group.findings]
    for each in report.transactions:
        found += [(GroupReport(each.run_id, "transactions", each.from_ms, each.to_ms), row) for row in each.findings]
    return sorted(found, key=lambda each: order(each[1], each[0].seen_ms))


def cost_of(row: Row) -> str:
    """The cost of a finding, where it has one that matters."""
    score = row.get("score") or 0.0
    return f"{seconds(score * 1_000)} consumer-seconds" if score >= SHOWN_FROM_S else ""


def about(group: GroupReport, row: Row, several: Callable[[GroupReport], str]) -> str:
    """Group of a finding, or the groups that share it."""
    shared = row.get("groups") or ()
    return f"{len(shared)} groups" if row.get("group_id") is None and len(shared) > 1 else several(group)
