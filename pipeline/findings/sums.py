"""Rows of each table that the rules see, and the sums of one group's rows.

Each sum is one function of one group's rows, as tuples of the columns it reads; it yields the fields of its class in
:mod:`~rejoin.pipeline.findings.observed_rows`. Spark's tasks, reports in this process, ``watch`` and ``why`` call the
same functions. Nothing here needs Spark or Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.pipeline.findings.observed_rows import (
    COMMIT_APIS,
    MINUTE_MS,
    Balance,
    FirstOwnership,
    GenerationPauses,
    MemberSession,
    MinuteOfCommits,
    ObservedEvent,
    ObservedLoss,
    ObservedRebalance,
    RunContext,
)
from rejoin.pipeline.findings.reads import KNOWN, Where, matches, more_columns, read_events
from rejoin.pipeline.vocabulary import BROKER_LOG, EXACT, REQUEST, REQUEST_LOG

Values: TypeAlias = tuple[Any, ...]
Sums: TypeAlias = Callable[[Iterable[Values]], Iterator[Values]]

COUNTS_BROKERS: Final = ("group_loaded", "partition_elected", "partition_loaded", "broker_started")
"""Events whose nodes are brokers."""
SIGNS: Final = ("run_id", "source", "event", "confidence", "node")
"""Columns whose distinct values say what holds for a run."""


def pauses_by_generation(rows: Iterable[Values]) -> Iterator[Values]:
    """Pauses by kind and by the generation that ended them."""
    found: dict[tuple[int, str], tuple[int, int, int, bool]] = {}
    for generation, kind, ended_at_ms, stopped_ms, confidence in rows:
        pauses, stopped, last_ms, guessed = found.get((generation, kind), (0, 0, ended_at_ms, True))
        found[generation, kind] = (
            pauses + 1,
            stopped + (stopped_ms or 0),
            max(last_ms, ended_at_ms),
            guessed and confidence != EXACT,
        )
    return ((*key, *sums) for key, sums in found.items())


def first_owned(rows: Iterable[Values]) -> Iterator[Values]:
    """When each partition first had an owner."""
    found: dict[tuple[str, int], int] = {}
    for topic, partition, from_ms in rows:
        first_ms = found.get((topic, partition))
        if first_ms is None or from_ms < first_ms:
            found[topic, partition] = from_ms
    return ((*key, first_ms) for key, first_ms in found.items())


def losses(rows: Iterable[Values]) -> Iterator[Values]:
    """Lost records of each partition."""
    found: dict[tuple[str, int], tuple[int, int, int, int]] = {}
    for topic, partition, records, at_ms in rows:
        lost, ranges, first_ms, last_ms = found.get((topic, partition), (0, 0, at_ms, at_ms))
        found[topic, partition] = (lost + records, ranges + 1, min(first_ms, at_ms), max(last_ms, at_ms))
    return ((*key, *sums) for key, sums in found.items())


def commits_by_minute(rows: Iterable[Values]) -> Iterator[Values]:
    """Commits that were stored, by minute."""
    minutes: dict[int, _Minute] = {}
    for at_ms, member_id, client_id, size in rows:
        number = at_ms // MINUTE_MS
        minute = minutes.get(number)
        if minute is None:
            minute = minutes[number] = _Minute()
        minute.commits += 1
        if size is not None:
            minute.offsets = size + (minute.offsets or 0)
        minute.committers.add(client_id if member_id is None else member_id)
    return (
        (number, minute.commits, minute.offsets, len(minute.committers - {None})) for number, minute in minutes.items()
    )


class _Minute:
    """Commits of one minute."""

    __slots__ = ("commits", "committers", "offsets")

    def __init__(self) -> None:
        self.commits = 0
        self.offsets: int | None = None
        self.committers: set[str | None] = set()


class RowKind(NamedTuple):
    """One kind of row that the rules see."""

    row: type[Any]
    table: str
    selects: Where | None = None
    """The rows of the table that count; all of them without it."""
    reads: tuple[str, ...] = ()
    """Columns that are summed up."""
    sums: Sums | None = None
    """Without it the rules see the rows as they are."""
    lengths: tuple[str, ...] = ()
    """Lists of which only the length is read."""

    @property
    def where(self) -> Where | None:
        """The rows of the table that count. Of events, rules declare which they see one by one."""
        if self.row is ObservedEvent:
            return [{**each, "group_id": KNOWN} for each in read_events()]
        return self.selects

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules see."""
        more = more_columns() if self.row is ObservedEvent else ()
        return (*(each.name for each in fields(self.row) if each.name != "more"), *more)


KINDS: Final[Mapping[str, RowKind]] = {
    "rebalance": RowKind(ObservedRebalance, "rebalances"),
    "session": RowKind(MemberSession, "member_sessions"),
    "balance": RowKind(Balance, "balance"),
    "pauses": RowKind(
        GenerationPauses,
        "pauses",
        [{"generation_to": KNOWN, "ended_at_ms": KNOWN, "end": ("assigned",)}],
        ("generation_to", "kind", "ended_at_ms", "stopped_ms", "confidence"),
        pauses_by_generation,
    ),
    "owned": RowKind(
        FirstOwnership, "ownership", [{"kind": ("owned",)}], ("topic", "partition", "from_ms"), first_owned
    ),
    "loss": RowKind(ObservedLoss, "records", [{"kind": ("lost",)}], ("topic", "partition", "records", "at_ms"), losses),
    "commits": RowKind(
        MinuteOfCommits,
        "events",
        [
            {"event": ("offsets_committed",), "group_id": KNOWN},
            {"event": (REQUEST,), "group_id": KNOWN, "api": COMMIT_APIS, "error": ("NONE",)},
        ],
        ("at_ms", "member_id", "client_id", "offsets"),
        commits_by_minute,
        lengths=("offsets",),
    ),
    "event": RowKind(ObservedEvent, "events"),
}
"""Kinds of rows, as :meth:`rejoin.pipeline.findings.history.GroupHistory.of` takes them."""


def sums_of(kind: str, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sums of one group's rows of a table."""
    seen = KINDS[kind]
    assert seen.sums is not None, f"rows of {seen.table} are seen as they are"
    wanted = (row for row in rows if seen.where is None or matches(row, seen.where))
    made = seen.sums(tuple(map(row.get, seen.reads)) for row in wanted)
    return [dict(zip(seen.columns, values, strict=True)) for values in made]


def contexts_of(signs: Iterable[Values]) -> dict[str, RunContext]:
    """Context of each run: its end, the number of its brokers, what its sources report.

    ``signs``: the distinct values of :data:`SIGNS` in the run's events, each with its last instant.
    """
    lasts: dict[str, int] = {}
    ends: dict[str, int] = {}
    brokers: dict[str, set[str]] = {}
    with_joins, with_requests = set(), set()
    for run_id, source, event, confidence, node, at_ms in signs:
        lasts[run_id] = max(at_ms, lasts.get(run_id, at_ms))
        if event == "run_ended":
            ends[run_id] = max(at_ms, ends.get(run_id, at_ms))
        if event in COUNTS_BROKERS and node is not None:
            brokers.setdefault(run_id, set()).add(node)
        if event == "member_joined" and source in (BROKER_LOG, REQUEST_LOG) and confidence == EXACT:
            with_joins.add(run_id)
        if event == REQUEST:
            with_requests.add(run_id)
    return {
        run_id: RunContext(
            run_id,
            ends.get(run_id, last_ms),
            len(brokers.get(run_id, ())),
            joins_reported=run_id in with_joins,
            requests_read=run_id in with_requests,
        )
        for run_id, last_ms in lasts.items()
    }
