"""Rows of the table of events as the events that they were: logs do not say everything, so parts may be empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.journal.events.base import Event
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.pipeline.drawn.drawn_event import DrawnEvent
from rejoin.pipeline.drawn.lanes import with_lanes
from rejoin.pipeline.drawn.row_events import event_of
from rejoin.pipeline.event_fields import CAUSE, COLUMN_OF, EVENT_CLASSES

_ALWAYS: Final = ("run_id", "source", "node", "seq", "at_ms", "group_id")
DRAWN: Final = {name: each for name, each in EVENT_CLASSES.items() if name in EventRecorder.event_names()}
"""The events that are drawn, by their names."""

Key = tuple[str, str]
"""Run and group."""


def events_of(rows: pa.Table, groups: Collection[Key], most: int) -> dict[Key, list[DrawnEvent]]:
    """The events to draw of these groups, in the order of time; nothing at all where they are more than ``most``."""
    found: dict[Key, list[DrawnEvent]] = defaultdict(list)
    everybody: dict[str, list[DrawnEvent]] = defaultdict(list)
    """Events that are of no group, by run."""
    drawn = rows.filter(pc.is_in(rows.column("event"), pa.array(list(DRAWN))))
    if drawn.num_rows > most:
        return {}
    for name, event in DRAWN.items():
        mine = drawn.filter(pc.equal(drawn.column("event"), name))
        if not mine.num_rows:
            continue
        wanted = {*_ALWAYS, *_columns_of(event)}
        for row in mine.select([each for each in mine.column_names if each in wanted]).to_pylist():
            place = DrawnEvent(row["at_ms"], row["seq"] or 0, row["node"] or "", row["source"], event_of(event, row))
            if row["group_id"] is None:
                everybody[row["run_id"]].append(place)
            elif (key := (row["run_id"], row["group_id"])) in groups:
                found[key].append(place)
    return {
        key: with_lanes(sorted([*events, *everybody[key[0]]], key=lambda each: (each.at_ms, each.seq)))
        for key, events in found.items()
    }


def _columns_of(event: type[Event]) -> Iterable[str]:
    for field in event.model_fields:
        yield COLUMN_OF.get(field, field)
        if field == CAUSE:
            yield from ("cause_member_id", "cause_group_instance_id", "client_reason")
