"""One self-contained HTML page of a run: partitions by time, coloured by owner, rebalances marked with their cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from rejoin import pages
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PollTimeoutExceeded
from rejoin.journal.events.coordinator import RebalanceCompleted, RebalanceStarted
from rejoin.journal.events.simulation import ScenarioAction
from rejoin.journal.formatting import cause_text
from rejoin.journal.timeline_lines import short
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.produced_records import PRODUCER_ROWS
from rejoin.simulation.output.summary import ROWS, Summary
from rejoin.simulation.output.timeline import clock
from rejoin.simulation.output.transformed_records import READER_ROWS, TRANSACTION_ROWS
from rejoin.simulation.simulation import Simulation


@dataclass(slots=True)
class RebalanceMark:
    """A rebalance of a group, from its first beginning to its end."""

    group: str
    start: Millis
    end: Millis
    cause: str
    text: str


class ChartEvents:
    """Collects the rebalances and the actions of a run, for the chart."""

    def __init__(self) -> None:
        self.rebalances: list[RebalanceMark] = []
        self.done: list[tuple[Millis, str]] = []
        self._open: dict[str, RebalanceMark] = {}

    def on_event(self, _: Actor, event: Event, now: Millis) -> None:
        """Take an event."""
        match event:
            case RebalanceStarted():
                if event.group_id not in self._open:
                    mark = RebalanceMark(event.group_id, now, now, event.cause.cause, short(cause_text(event.cause)))
                    self._open[event.group_id] = mark
                    self.rebalances.append(mark)
            case RebalanceCompleted():
                mark_or_none = self._open.pop(event.group_id, None)
                if mark_or_none is not None:
                    mark_or_none.end = now
            case ScenarioAction():
                self.done.append((now, event.action))
            case PollTimeoutExceeded():
                self.done.append((now, f"{event.client_id} did not poll in time"))
            case _:
                pass

    def finish(self, now: Millis) -> None:
        """The end of the run: rebalances that still go on last until here."""
        for mark in self._open.values():
            mark.end = now


CHART_EVENTS: Final = (RebalanceStarted, RebalanceCompleted, ScenarioAction, PollTimeoutExceeded)
"""The events that a chart marks."""


def render(simulation: Simulation, summary: Summary, marks: ChartEvents, title: str, lines: list[str]) -> str:
    """The page."""
    marks.finish(summary.horizon_ms)
    owners: dict[str, int] = {}
    rows: dict[Any, int] = {}
    for partition in sorted(simulation.ownership.partitions):
        rows[partition] = len(rows)
    for name in sorted(simulation.consumers, key=lambda each: (each.rpartition("-")[0], len(each), each)):
        owners[name] = len(owners)
    data = {
        "horizon": summary.horizon_ms,
        "rows": [[partition.group_id, partition.topic, partition.partition] for partition in rows],
        "owners": list(owners),
        "held": [
            [rows[held.partition], owners[held.client_id], held.start, held.end] for held in simulation.ownership.held
        ],
        "marks": [asdict(mark) for mark in marks.rebalances],
        "done": marks.done,
    }
    scenario = simulation.scenario
    tables: tuple[tuple[Any, Mapping[str, Any]], ...] = (
        (ROWS, summary.groups),
        (TRANSACTION_ROWS, summary.transactions),
        (PRODUCER_ROWS, summary.producers),
        (READER_ROWS, summary.readers),
    )
    return pages.render(
        __package__,
        "page.html",
        title=title,
        question=scenario.question,
        answer=scenario.answer,
        run=f"{clock(summary.horizon_ms)} of virtual time, seed {summary.seed}",
        tables=[(rows, parts) for rows, parts in tables if parts],
        story="\n".join(lines),
        data=pages.script_data(data),
    )
