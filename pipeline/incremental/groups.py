"""The tables about groups, step by step: rows from needed and new events, settled when their group is inactive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline import schemas
from rejoin.pipeline.findings.absences import OF_PROCESSES, REACHES_MS
from rejoin.pipeline.findings.table import are_commits, are_read_one_by_one
from rejoin.pipeline.incremental import still_needed
from rejoin.pipeline.incremental.ranges import condensed
from rejoin.pipeline.incremental.runs import SCHEMA, ObservedRuns
from rejoin.pipeline.tables.group_tables import TABLES, balance, member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import EVENTS_READ, ranges_by_partition, records
from rejoin.pipeline.tables.runs import Runs, runs_of

Row = dict[str, Any]
Key = tuple[str, str]
"""Run and group."""
Made = dict[str, pa.Table]

AGAIN_MS: Final = 60_000
"""So often a group is looked at of which only records and commits come."""

READ: Final[Mapping[str, Sequence[str]]] = {
    **{name: tuple(table.reads) for name, table in TABLES.items()},
    "records": EVENTS_READ,
}
"""Tables in the order in which they are made, with the events that each reads."""
_CHANGES: Final = sorted({name for table, names in READ.items() if table != "records" for name in names})
"""Events after which the tables of a group are made again in the same step."""
_ONE_BY_ONE: Final = "findings"
_KEYS: Final = {
    "rebalances": ("rebalance_id",),
    "member_sessions": ("member_id", "ended_at_ms"),
    "pauses": ("node", "client_id", "member_id", "began_at_ms", "how"),
    "balance": ("at_ms", "generation"),
    "ownership": ("topic", "partition", "kind", "from_ms", "owner"),
}
"""Columns that identify a row within its group."""
_OPEN: Final[Mapping[str, Callable[[Row], bool]]] = {
    "rebalances": lambda row: row["outcome"] == "open",
    "member_sessions": lambda row: row["end"] == "open",
    "pauses": lambda row: row["end"] == "open",
    "balance": lambda row: row["until_ms"] is None,
    "ownership": lambda row: row["end"] in ("open", "final"),
}
_SCHEMAS: Final = {name: schemas.TABLES[name] for name in READ}
_ID: Final = ("run_id", "source", "node", "seq")
_NUMBERS: Final = ("number", "episode", "chain")


@dataclass(slots=True)
class SessionSoFar:
    """Columns of a present member that come from settled rows, and from rejoins that are not kept."""

    joined_at_ms: int | None
    first_generation: int | None
    last_generation: int | None
    generations: int
    caused: int
    rejoins: int
    previous_end: str | None
    away_ms: int | None


@dataclass(slots=True)
class GroupSoFar:
    """State of a group, kept beside its events."""

    changed_ms: int = 0
    """Its last change."""
    session_ms: int = 0
    """The longest session timeout of its members."""
    rested_ms: int | None = None
    """Start of the newest activity after a time of inactivity; earlier rows can be settled now."""
    made_ms: int = 0
    """The end of its run when its rows were made."""
    rebalances: int = 0
    """How many are settled."""
    settled: dict[str, list[list[Any]]] = field(default_factory=dict)
    """Keys of settled rows that the kept events make once more, by table."""
    sessions: dict[str, SessionSoFar] = field(default_factory=dict)


@dataclass
class StepRows:
    """Rows of some groups that a step makes."""

    keys: list[Key]
    made: Made
    """All rows that are not settled by an earlier step."""
    settled: Made
    """Rows that never change again."""
    open: Made


class Groups:
    """The groups of all runs. Events are kept by table, each for as long as that needs it."""

    def __init__(self, runs: ObservedRuns) -> None:
        self._runs = runs
        self.kept: dict[str, pa.Table] = {name: SCHEMA.empty_table() for name in (*READ, _ONE_BY_ONE)}
        self.states: dict[Key, GroupSoFar] = {}

    def add(self, events: pa.Table, runs_concerned: Iterable[str], *, everything: bool) -> list[Key]:
        """Take in the events of a step; returns the groups to look at now."""
        for name, read in READ.items():
            self._keep(name, events.filter(pc.is_in(events["event"], pa.array(read))))
        one_by_one = pc.and_(are_read_one_by_one(events), pc.is_valid(events["group_id"]))
        self._keep(_ONE_BY_ONE, events.filter(one_by_one))
        self._drop_processes()
        changes = pc.or_(pc.is_in(events["event"], pa.array(_CHANGES)), one_by_one)
        changed = events.filter(pc.and_(changes, pc.is_valid(events["group_id"])))
        due = _largest(changed, "session_timeout_ms")
        for key, session_ms in due.items():
            state = self.states.setdefault(key, GroupSoFar())
            state.session_ms = max(state.session_ms, session_ms)
        for key, instants in _instants(changed).items():
            self._note_changes(key, instants)
        others = events.filter(pc.or_(pc.is_in(events["event"], pa.array(EVENTS_READ)), are_commits(events)))
        for key in _largest(others, "at_ms"):
            state = self.states.setdefault(key, GroupSoFar())
            if self._runs.known[key[0]].end_ms - state.made_ms >= AGAIN_MS:
                due[key] = 0
        concerned = set(runs_concerned)
        return [key for key in self.states if key in due or everything or key[0] in concerned]

    def _drop_processes(self) -> None:
        """Drop process events older than any open absence."""
        kept = self.kept[_ONE_BY_ONE]
        since = [self._runs.known[run_id].end_ms - REACHES_MS for run_id in kept["run_id"].to_pylist()]
        is_old = pc.less(kept["at_ms"], pa.array(since, pa.int64()))
        of_processes = pc.is_in(kept["event"], pa.array(OF_PROCESSES))
        self.kept[_ONE_BY_ONE] = kept.filter(pc.invert(pc.and_(is_old, of_processes)))

    def _note_changes(self, key: Key, instants: list[int]) -> None:
        state = self.states[key]
        for before_ms, at_ms in pairwise([state.changed_ms, *instants] if state.changed_ms else instants):
            if self._runs.is_quiet(key[0], before_ms, state.session_ms, at_ms):
                state.rested_ms = at_ms
        state.changed_ms = max(state.changed_ms, instants[-1])

    def _keep(self, name: str, events: pa.Table) -> None:
        if events.num_rows:
            self.kept[name] = pa.concat_tables([self.kept[name], events])

    def make(self, keys: Sequence[Key]) -> StepRows:
        """The rows of some groups, settled where a group is inactive, or was since the last step."""
        done: dict[str, list[Row]] = defaultdict(list)
        left: dict[str, list[Row]] = defaultdict(list)
        rested = [key for key in keys if self.states[key].rested_ms is not None]
        if rested:
            self._make(rested, self._before_rest(rested), set(rested), done, defaultdict(list))
        inactive = {key for key in keys if self._is_inactive(key)}
        self._make(keys, self._of_groups(keys), inactive, done, left)
        self._condense(keys)
        for key in keys:
            self.states[key].made_ms = self._runs.known[key[0]].end_ms
        settled, still_open = (
            {name: pa.Table.from_pylist(of[name], _SCHEMAS[name]) for name in READ} for of in (done, left)
        )
        made = {name: pa.concat_tables([settled[name], still_open[name]]) for name in READ}
        return StepRows(list(keys), made, settled, still_open)

    def _make(
        self,
        keys: Sequence[Key],
        events: Mapping[str, pa.Table],
        inactive: set[Key],
        done: dict[str, list[Row]],
        left: dict[str, list[Row]],
    ) -> None:
        """Add rows to those that are settled, and to those that are not."""
        rows = {name: _by_group(table) for name, table in self._made(keys, events).items()}
        for name, found in rows.items():
            for key, ours in found.items():
                for row in ours:
                    is_settled = (name == "records" or key in inactive) and self._is_over(name, row)
                    (done if is_settled else left)[name].append(row)
        if inactive:
            self._settle(sorted(inactive), events, rows)

    def _before_rest(self, keys: Sequence[Key]) -> dict[str, pa.Table]:
        """Kept events of some groups from before they changed again. Records do not matter."""
        until = {key: self.states[key].rested_ms or 0 for key in keys}
        found = self._of_groups(keys) | {"records": SCHEMA.empty_table()}
        for name, events in found.items():
            limits = [until[run_id, group_id or ""] for run_id, group_id in _groups_of(events)]
            found[name] = events.filter(pc.less(events["at_ms"], pa.array(limits, pa.int64())))
        return found

    def _is_inactive(self, key: Key) -> bool:
        state = self.states[key]
        return self._runs.is_quiet(key[0], state.changed_ms, state.session_ms)

    def _is_over(self, name: str, row: Row) -> bool:
        if name == "records":
            return row["kind"] == "duplicate" and bool(row["at_ms"] < self._runs.settled_before(row["run_id"]))
        # A partition without a first owner so far has a gap up to the end of the run.
        ends_with_run = name == "ownership" and row["to_ms"] >= self._runs.known[row["run_id"]].end_ms
        return not (_OPEN[name](row) or ends_with_run)

    # -- rows

    def _of_groups(self, keys: Sequence[Key]) -> dict[str, pa.Table]:
        """Kept events of some groups, by table."""
        return {name: kept.filter(is_of(kept, keys)) for name, kept in self.kept.items()}

    def one_by_one(self, keys: Sequence[Key]) -> pa.Table:
        """The events of some groups that rules see as they are."""
        kept = self.kept[_ONE_BY_ONE]
        return kept.filter(is_of(kept, keys))

    def _made(self, keys: Sequence[Key], events: Mapping[str, pa.Table]) -> Made:
        runs = self._summaries(run_id for run_id, _ in keys)
        read = {name: rows.combine_chunks() for name, rows in events.items()}
        rebalanced = self._numbered(rebalances(read["rebalances"]))
        made = {
            "rebalances": rebalanced,
            "member_sessions": self._sessions(read["member_sessions"], rebalanced, runs),
            "pauses": pauses(read["pauses"], rebalanced, runs),
            "balance": balance(read["balance"], runs),
            "ownership": ownership(read["ownership"], runs),
            "records": records(ranges_by_partition(read["records"], runs)),
        }
        return {name: self._without_settled(name, table) for name, table in made.items()}

    def _summaries(self, run_ids: Iterable[str]) -> Runs:
        return runs_of(self._runs.rows(sorted(set(run_ids))))

    def _without_settled(self, name: str, table: pa.Table) -> pa.Table:
        groups = set(zip(table["run_id"].to_pylist(), table["group_id"].to_pylist(), strict=True))
        settled = {key: self.states[key].settled.get(name) for key in groups}
        known = {(*key, *row) for key, rows in settled.items() for row in map(tuple, rows or ())}
        if not known:
            return table
        keys = zip(*(table[each].to_pylist() for each in ("run_id", "group_id", *_KEYS[name])), strict=True)
        return table.filter(pa.array([key not in known for key in keys], pa.bool_()))

    def _numbered(self, table: pa.Table) -> pa.Table:
        """Rebalances, numbered on from those already settled."""
        rows = table.to_pylist()
        for key, ours in _by_group(table, rows).items():
            state = self.states[key]
            more = state.rebalances - len(state.settled.get("rebalances", ()))
            for row in ours if more else ():
                row.update({name: row[name] + more for name in _NUMBERS})
        return self._without_settled("rebalances", pa.Table.from_pylist(rows, table.schema))

    def _sessions(self, events: pa.Table, rebalanced: pa.Table, runs: Runs) -> pa.Table:
        """Sessions with what these rebalances say of them, and settled ones."""
        table: pa.Table = member_sessions(events, rebalanced, runs)
        rows = table.to_pylist()
        for row in rows:
            so_far = self.states[row["run_id"], row["group_id"]].sessions.get(row["member_id"])
            if so_far is not None and so_far.joined_at_ms == row["joined_at_ms"]:
                _add(row, so_far)
        return pa.Table.from_pylist(rows, table.schema)

    # -- what is kept

    def _settle(
        self, keys: Sequence[Key], events: Mapping[str, pa.Table], rows: Mapping[str, Mapping[Key, list[Row]]]
    ) -> None:
        """Keep what later rows of inactive groups need of these events, from which these rows were made."""
        events = {name: table.filter(is_of(table, keys)) for name, table in events.items()}
        over = [row for key in keys for row in rows["rebalances"].get(key, ()) if not _OPEN["rebalances"](row)]
        runs = self._summaries(run_id for run_id, _ in keys)
        ended = pa.Table.from_pylist(over, _SCHEMAS["rebalances"])
        sessions = _by_group(self._sessions(events["member_sessions"], ended, runs))
        now_ms = {key: self.states[key].rested_ms or self._runs.reached_ms(key[0]) for key in keys}
        for key in keys:
            state = self.states[key]
            state.rebalances += sum(not _OPEN["rebalances"](row) for row in rows["rebalances"].get(key, ()))
            state.sessions = {
                row["member_id"]: SessionSoFar(**{name: row[name] for name in SessionSoFar.__dataclass_fields__})
                for row in sessions.get(key, ())
                if row["end"] == "open"
            }
            state.settled, state.rested_ms = {}, None
        needed = {name: self._needed(name, table, sessions, now_ms) for name, table in events.items() if name in _KEYS}
        for name, table in needed.items():
            kept = self.kept[name]
            others = kept.filter(pc.invert(is_of(kept, keys)))
            later = _without(kept.filter(is_of(kept, keys)), events[name])
            self.kept[name] = pa.concat_tables([others, table, later]).combine_chunks()
        for row in (
            needed["member_sessions"]
            .filter(pc.equal(needed["member_sessions"]["event"], "member_rejoined"))
            .to_pylist()
        ):
            so_far = self.states[row["run_id"], row["group_id"]].sessions.get(row["member_id"])
            if so_far is not None:
                so_far.rejoins -= 1
        empty = {name: SCHEMA.empty_table() for name in READ}
        for name, table in self._made(keys, empty | needed).items():
            if name in _KEYS:
                for key, ours in _by_group(table).items():
                    keys_over = [[row[each] for each in _KEYS[name]] for row in ours if self._is_over(name, row)]
                    self.states[key].settled[name] = keys_over

    def _needed(
        self, name: str, events: pa.Table, sessions: Mapping[Key, list[Row]], now_ms: Mapping[Key, int]
    ) -> pa.Table:
        kept: list[Row] = []
        for key, rows in _by_group(events).items():
            match name:
                case "rebalances":
                    kept += still_needed.for_rebalances(rows)
                case "member_sessions":
                    kept += still_needed.for_member_sessions(rows, sessions.get(key, ()), now_ms[key])
                case "pauses":
                    kept += still_needed.for_pauses(rows)
                case "balance":
                    kept += still_needed.for_balance(rows)
                case "ownership":
                    kept += still_needed.for_ownership(rows)
        return pa.Table.from_pylist(kept, SCHEMA)

    def _condense(self, keys: Sequence[Key]) -> None:
        kept = self.kept["records"]
        ours = is_of(kept, keys)
        before = {run_id: self._runs.settled_before(run_id) for run_id, _ in keys}
        condensed_rows = condensed(kept.filter(ours), before)
        self.kept["records"] = pa.concat_tables([kept.filter(pc.invert(ours)), condensed_rows]).combine_chunks()

    def forget(self, before_ms: Mapping[str, int]) -> None:
        """Drop events that rules see one by one from before an instant of their run."""
        kept = self.kept[_ONE_BY_ONE]
        limits = pa.array([before_ms[run_id] for run_id in kept["run_id"].to_pylist()], pa.int64())
        self.kept[_ONE_BY_ONE] = kept.filter(pc.greater_equal(kept["at_ms"], limits)).combine_chunks()

    # -- on disk

    def as_json(self) -> list[Any]:
        """The states of the groups."""
        return [[*key, asdict(state)] for key, state in self.states.items()]

    def restore(self, states: Iterable[Any], kept: Mapping[str, pa.Table]) -> None:
        """Restore the states from :meth:`as_json`, and ``kept``."""
        for run_id, group_id, known in states:
            sessions = {name: SessionSoFar(**so_far) for name, so_far in known["sessions"].items()}
            self.states[run_id, group_id] = GroupSoFar(**known | {"sessions": sessions})
        self.kept |= kept


def _add(row: Row, so_far: SessionSoFar) -> None:
    first, last = row["first_generation"], row["last_generation"]
    row["first_generation"] = first if so_far.first_generation is None else so_far.first_generation
    row["last_generation"] = so_far.last_generation if last is None else last
    row["generations"] += so_far.generations
    row["caused"] += so_far.caused
    row["rejoins"] += so_far.rejoins
    if row["previous_end"] is None:
        row["previous_end"], row["away_ms"] = so_far.previous_end, so_far.away_ms


def is_of(events: pa.Table, keys: Sequence[Key]) -> pa.ChunkedArray:
    """A mask of the rows about these groups."""
    groups = pa.array([f"{run_id}\0{group_id}" for run_id, group_id in keys], pa.string())
    return pc.is_in(pc.binary_join_element_wise(events["run_id"], pc.fill_null(events["group_id"], ""), "\0"), groups)


def _without(events: pa.Table, others: pa.Table) -> pa.Table:
    """Events that are not among others, all of which are."""
    if events.num_rows == others.num_rows:
        return events.slice(0, 0)
    known = set(zip(*(others[name].to_pylist() for name in _ID), strict=True))
    ids = zip(*(events[name].to_pylist() for name in _ID), strict=True)
    return events.filter(pa.array([each not in known for each in ids], pa.bool_()))


def _groups_of(events: pa.Table) -> Iterator[tuple[str, str | None]]:
    return zip(events["run_id"].to_pylist(), events["group_id"].to_pylist(), strict=True)


def _instants(events: pa.Table) -> dict[Key, list[int]]:
    """The instants of the events of each group, in order."""
    found: dict[Key, set[int]] = defaultdict(set)
    for (run_id, group_id), at_ms in zip(_groups_of(events), events["at_ms"].to_pylist(), strict=True):
        found[run_id, group_id or ""].add(at_ms)
    return {key: sorted(instants) for key, instants in found.items()}


def _largest(events: pa.Table, name: str) -> dict[Key, int]:
    """The largest value of a column in the events of each group."""
    groups = events.select(["run_id", "group_id", name])
    groups = groups.set_column(1, "group_id", pc.fill_null(groups["group_id"], ""))
    sums = groups.group_by(["run_id", "group_id"]).aggregate([(name, "max")])
    return {(row["run_id"], row["group_id"]): row[f"{name}_max"] or 0 for row in sums.to_pylist()}


def _by_group(table: pa.Table, rows: list[Row] | None = None) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in table.to_pylist() if rows is None else rows:
        found[row["run_id"], row["group_id"] or ""].append(row)
    return found
