"""The drawing of one group, made of a journal's rows as they come."""

from __future__ import annotations

from typing import Any, Final

from rejoin.journal.envelope import JournalRow
from rejoin.journal.events import (
    client,
    consumer_groups,
    coordinator,
    share_groups,
    share_partitions,
    simulation,
    streams_groups,
    streams_members,
    transactions,
)
from rejoin.journal.recording.as_scenario import ScenarioWriter
from rejoin.journal.recording.consumer_journals import NO_JOURNALS, ConsumerJournals
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.journal.schema import JournalSchema, events_in

SCHEMA: Final = JournalSchema(
    each
    for each in events_in(
        *(client, consumer_groups, coordinator, share_groups, share_partitions, simulation, streams_groups),
        *(streams_members, transactions),
    )
    if each.name in EventRecorder.event_names()
)
"""The rows that are drawn; others need not be read."""


class GroupRecording:
    """Takes rows in the order of time. Instants are ms since ``origin``."""

    def __init__(self, group_id: str, origin: int, consumers: ConsumerJournals = NO_JOURNALS) -> None:
        self._group_id = group_id
        self._origin = origin
        self._recorder = EventRecorder(consumers)
        self._scenario = ScenarioWriter(group_id)
        self._until = 0

    def add(self, row: JournalRow) -> None:
        """Take a row; those of other groups are left out."""
        if getattr(row.event, "group_id", self._group_id) == self._group_id:
            at = row.envelope.at_ms - self._origin
            self._until = max(self._until, at)
            self._recorder.on_event(row.envelope.node, row.event, at)
            self._scenario.on_event(row.event, at)

    def take(self, now_ms: int | None = None) -> dict[str, Any]:
        """The rows since the last call, and until when all is known: until now, or the last row (ms since 1970)."""
        if now_ms is not None:
            self._until = max(self._until, now_ms - self._origin)
        return {"until": self._until, **self._recorder.take()}

    def scenario(self) -> str:
        """The recording so far as a scenario; empty if the group never had a member."""
        return self._scenario.text(self._until)
