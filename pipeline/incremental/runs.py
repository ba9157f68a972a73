"""State of each run: positions of its streams, its end, and the events that concern all of its groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.sums import COUNTS_BROKERS
from rejoin.pipeline.findings.table import without_group
from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.tables.groups.rows import TOPIC_EVENTS, date_of
from rejoin.pipeline.vocabulary import EXACT

SCHEMA: Final = EVENTS
_STREAM: Final = ("run_id", "source", "node")

Interval = list[int]
"""First and last number of events that were taken in."""


@dataclass(slots=True)
class StreamState:
    """One stream of a run: the numbers that were taken in, and the newest instant."""

    seen: list[Interval] = field(default_factory=list)
    newest_ms: int = 0

    def add(self, seqs: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Take in numbers in the order of their rows; which of them are new. Each row with a known number is not."""
        is_new = np.zeros(len(seqs), dtype=np.bool_)
        is_new[np.unique(seqs, return_index=True)[1]] = True
        for first, last in self.seen:
            is_new &= (seqs < first) | (seqs > last)
        fresh = np.sort(seqs[is_new])
        if len(fresh):
            cuts = np.flatnonzero(np.diff(fresh) > 1)
            starts, ends = fresh[np.append(0, cuts + 1)], fresh[np.append(cuts, len(fresh) - 1)]
            self.seen = _united([*self.seen, *map(list, zip(starts.tolist(), ends.tolist(), strict=True))])
        return is_new


def _united(intervals: list[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return found


@dataclass(slots=True)
class RunState:
    """One run."""

    run_id: str
    end_ms: int = 0
    """Its newest instant, or that of its end."""
    is_complete: bool = False
    brokers: list[str] = field(default_factory=list)
    streams: dict[str, StreamState] = field(default_factory=dict)

    def reached_ms(self, stale_ms: int) -> int:
        """To which instant all streams have come that are still written."""
        instants = [stream.newest_ms for stream in self.streams.values()]
        newest = max(instants, default=0)
        return min((each for each in instants if newest - each <= stale_ms), default=0)

    def context(self) -> RunContext:
        """The run as rules see it. Streams are journals, so there are no requests."""
        return RunContext(self.run_id, self.end_ms, len(self.brokers))

    def end_row(self) -> dict[str, Any]:
        """An event at its end, for what goes on until then."""
        name = "run_ended" if self.is_complete else ""
        known = {"run_id": self.run_id, "source": "", "node": "", "seq": 0, "at_ms": self.end_ms, "event": name}
        return known | {"day": date_of(self.end_ms), "confidence": EXACT}


class Waits(NamedTuple):
    """When a stream is not expected to change any more what it said, in milliseconds of its events."""

    inactive_ms: int = 120_000
    """So long after the last change of a group its rows are settled, and longer where sessions are."""
    margin_ms: int = 60_000
    """Records, commits and transactions are settled when they are older."""
    stale_ms: int = 3_600_000
    """A stream that is so far behind the others is not waited for: it has ended, or nothing happens there."""


class ObservedRuns:
    """All runs. Instants are those of their events, in milliseconds."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self.known: dict[str, RunState] = {}
        self.events: pa.Table = SCHEMA.empty_table()
        """Events of topics and brokers, which are about no group."""

    def add(self, events: pa.Table) -> tuple[pa.Table, set[str]]:
        """The events of a step that were not taken in before, and the runs in which something concerns all groups."""
        events = self._new(events)
        self._note(events)
        concern_all = events.filter(_concerns_all(events))
        if concern_all.num_rows:
            self.events = pa.concat_tables([self.events, concern_all])
        ended = events.filter(pc.equal(events["event"], "run_ended"))
        return events, {*concern_all["run_id"].to_pylist(), *ended["run_id"].to_pylist()}

    def reached_ms(self, run_id: str) -> int:
        """To which instant all streams of a run have come that are still written."""
        return self.known[run_id].reached_ms(self._waits.stale_ms)

    def settled_before(self, run_id: str) -> int:
        """No event from before this instant is expected any more."""
        return self.reached_ms(run_id) - self._waits.margin_ms

    def is_quiet(self, run_id: str, changed_ms: int, session_ms: int, until_ms: int | None = None) -> bool:
        """Whether a group that changed at that instant rested then for longer than its longest session.

        Only then it is known of each consumer that fell silent whether it was removed. ``until_ms``: when it changed
        again, if it did.
        """
        reached_ms = self.reached_ms(run_id)
        rests_ms = (reached_ms if until_ms is None else min(until_ms, reached_ms)) - changed_ms
        return rests_ms >= self._waits.inactive_ms and rests_ms > session_ms

    def rows(self, run_ids: Iterable[str]) -> pa.Table:
        """Events of some runs that tables need besides those of groups."""
        wanted = list(run_ids)
        ends = pa.Table.from_pylist([self.known[run_id].end_row() for run_id in wanted], SCHEMA)
        return pa.concat_tables(
            [ends, self.events.filter(pc.is_in(self.events["run_id"], pa.array(wanted, pa.string())))]
        )

    def events_seen(self, run_ids: Iterable[str]) -> pa.Table:
        """Events of some runs that rules see although they are about no group."""
        rows = self.rows(run_ids)
        return rows.filter(without_group(rows))

    def _new(self, events: pa.Table) -> pa.Table:
        codes = pc.binary_join_element_wise(*(events[name] for name in _STREAM), "\0").combine_chunks()
        codes = codes.dictionary_encode()
        numbers, seqs = codes.indices.to_numpy(), events["seq"].to_numpy()
        at_ms = events["at_ms"].to_numpy()
        is_new = np.zeros(len(seqs), dtype=np.bool_)
        for code, name in enumerate(codes.dictionary.to_pylist()):
            where = np.flatnonzero(numbers == code)
            run_id, _, stream = name.partition("\0")
            streams = self.known.setdefault(run_id, RunState(run_id)).streams
            state = streams.setdefault(stream, StreamState())
            is_new[where] = state.add(seqs[where])
            state.newest_ms = max(state.newest_ms, int(at_ms[where].max()))
        return events if is_new.all() else events.filter(pa.array(is_new))

    def _note(self, events: pa.Table) -> None:
        ended = events.filter(pc.equal(events["event"], "run_ended"))
        for run_id, at_ms in _largest(ended):
            run = self.known[run_id]
            run.end_ms, run.is_complete = max(at_ms, run.end_ms if run.is_complete else 0), True
        for run_id, at_ms in _largest(events):
            run = self.known[run_id]
            run.end_ms = run.end_ms if run.is_complete else max(run.end_ms, at_ms)
        of_brokers = events.filter(pc.is_in(events["event"], pa.array(COUNTS_BROKERS)))
        for row in of_brokers.group_by(["run_id", "node"]).aggregate([]).to_pylist():
            run = self.known[row["run_id"]]
            run.brokers = sorted({*run.brokers, row["node"]})

    # -- on disk

    def as_json(self) -> list[dict[str, Any]]:
        """All that is known of the runs, but for the events."""
        return [asdict(run) for run in self.known.values()]

    def restore(self, known: Iterable[dict[str, Any]], events: pa.Table) -> None:
        """Restore the runs from :meth:`as_json`."""
        for run in known:
            streams = {name: StreamState(**state) for name, state in run["streams"].items()}
            self.known[run["run_id"]] = RunState(**run | {"streams": streams})
        self.events = events


def _largest(events: pa.Table) -> list[tuple[str, int]]:
    lasts = events.group_by("run_id").aggregate([("at_ms", "max")])
    return list(zip(lasts["run_id"].to_pylist(), lasts["at_ms_max"].to_pylist(), strict=True))


def _concerns_all(events: pa.Table) -> pa.ChunkedArray:
    of_topics = pc.and_(pc.is_in(events["event"], pa.array(TOPIC_EVENTS)), pc.is_null(events["group_id"]))
    return pc.or_(of_topics, without_group(events))
