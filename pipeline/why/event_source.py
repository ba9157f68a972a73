"""One group explained from events that are held in memory, whatever they were read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.runs import run_of_service
from rejoin.pipeline.why.events import (
    consumers_report,
    findings_of,
    rebalances_of,
    sessions_of,
    share_tables_of,
    streams_tables_of,
)
from rejoin.pipeline.why.rows import memberships_seen, names_of, status_after, status_of_events
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, unknown_group


class EventSource:
    """Rows of the table ``events`` of one run or of several, in the order of their times."""

    def __init__(self, path: str, events: Sequence[Row], notes: Iterable[str], recorded: tuple[int, int]) -> None:
        """``recorded``: from when to when all events are there, in ms since 1970."""
        self._path = path
        self._recorded = recorded
        self._by_run = _by_run(events)
        self._notes = list(notes)

    def groups(self) -> list[GroupStatus]:
        """All groups, by id."""
        return [self._status(each, rebalances_of(each, self._events(each))) for each in sorted(self._runs)]

    def story(self, group_id: str) -> GroupStory:
        """All about one group: of the run that began last, where there are several."""
        if group_id not in self._runs:
            raise unknown_group(group_id, sorted(self._runs), self._path)
        runs, events = self._runs[group_id], self._events(group_id)
        rebalances = rebalances_of(group_id, events)
        of_runs = [f"the newest of {len(runs)} runs, {runs[-1]}"] if len(runs) > 1 else []
        return GroupStory(
            self._status(group_id, rebalances),
            rebalances,
            findings_of(group_id, events, rebalances, self._end_ms(events)),
            names_of(sessions_of(group_id, events)),
            [*of_runs, *self._notes],
            recorded=(min(events[0]["at_ms"], self._recorded[0]), self._end_ms(events)),
            costs_are_upper_bounds=not consumers_report(group_id, events),
            share_partitions=share_tables_of(group_id, events, self._end_ms(events))["share_partitions"],
            tasks=streams_tables_of(group_id, events, self._end_ms(events)),
            seen=memberships_seen(group_id, events),
        )

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        found: list[Row] = []
        for group_id in sorted(self._runs):
            events = self._events(group_id)
            found += findings_of(group_id, events, rebalances_of(group_id, events), self._end_ms(events))
        return sorted(found, key=order)

    @cached_property
    def _runs(self) -> dict[str, list[str]]:
        """Group to its runs, in the order in which they began."""
        found: dict[str, dict[str, None]] = {}
        for run_id, events in self._by_run.items():
            for row in events:
                if row["group_id"] is not None:
                    found.setdefault(row["group_id"], {})[run_id] = None
        return {group_id: list(runs) for group_id, runs in found.items()}

    def _events(self, group_id: str) -> list[Row]:
        return self._by_run[self._runs[group_id][-1]]

    def _end_ms(self, events: Sequence[Row]) -> int:
        """When a run ends: of several runs, no later than its last event."""
        last: int = events[-1]["at_ms"]
        return max(last, self._recorded[1]) if len(self._by_run) == 1 else last

    def _status(self, group_id: str, rebalances: list[Row]) -> GroupStatus:
        if not rebalances:
            return status_of_events(group_id, self._events(group_id))
        return status_after(group_id, rebalances[-1], len(rebalances), sessions_of(group_id, self._events(group_id)))


def unread_notes(unread: Sequence[InputFile], of_all: int) -> Iterator[str]:
    """A note about files that could not be read, where there are any."""
    if unread:
        named = ", ".join(f"{Path(each.path).name} ({each.reason})" for each in unread[:3])
        more = f" and {len(unread) - 3} more" if unread[3:] else ""
        yield f"{len(unread)} of {count(of_all, 'file')} could not be read: {named}{more}"


def _by_run(events: Sequence[Row]) -> dict[str, list[Row]]:
    """Run to its events. Those of a service's consumers belong to the run of the service, as in a report."""
    of_service = run_of_service((row["source"], row["run_id"]) for row in events)
    found: dict[str, list[Row]] = {}
    for row in events:
        if of_service is not None and row["source"] == "client":
            row["run_id"] = of_service
        found.setdefault(row["run_id"], []).append(row)
    return found
