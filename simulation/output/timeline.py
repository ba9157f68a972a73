"""The timeline of a run: its events as lines for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rejoin.journal.events import client as consumer
from rejoin.journal.events import coordinator as coordinator
from rejoin.journal.events import simulation as simulation
from rejoin.journal.events.base import Event
from rejoin.journal.formatting import owned
from rejoin.journal.timeline_lines import line_of, short, span
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.ownership import Ownership

NOTABLE_GAP_MS: Final = 1_000
"""Shorter gaps in the ownership of partitions are not shown."""

LOST_AGAIN_MS: Final = 30_000
"""A consumer that loses its coordinator again within this time is not shown again."""


def clock(at: Millis) -> str:
    """An instant: ``0:05:30.250``, or with days in front."""
    seconds, ms = divmod(at, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}d ' if days else ''}{hour}:{minute:02}:{second:02}.{ms:03}"


class Timeline:
    """Listens for events, and prints each as a line."""

    def __init__(self, print_line: Callable[[str], None], ownership: Callable[[], Ownership]) -> None:
        self._print_line = print_line
        self._ownership = ownership
        self._gaps_at: Millis = 0
        self._lost_at: dict[str, Millis] = {}

    def on_event(self, _: Actor, event: Event, now: Millis) -> None:
        """Take an event."""
        line = line_of(event)
        if isinstance(event, consumer.CoordinatorLost):
            # A consumer looks for it every 100 ms; one line is enough.
            if now - self._lost_at.get(event.client_id, -LOST_AGAIN_MS) < LOST_AGAIN_MS:
                line = None
            self._lost_at[event.client_id] = now
        if line is not None:
            self.flush()
            self._print_line(f"{clock(now):>12}  {short(line)}")
        if isinstance(event, consumer.PartitionsAssigned):
            self._gaps_at = now

    def flush(self) -> None:
        """Print which partitions of each group have an owner again."""
        gaps = self._ownership().closed_gaps
        if not gaps:
            return
        notable: dict[str, dict[str, list[int]]] = {}
        worst: dict[str, Millis] = {}
        for partition, gap in gaps:
            if gap >= NOTABLE_GAP_MS:
                group_id = partition.group_id
                notable.setdefault(group_id, {}).setdefault(partition.topic, []).append(partition.partition)
                worst[group_id] = max(worst.get(group_id, 0), gap)
        gaps.clear()
        for group_id, topics in notable.items():
            again = f"{owned(topics)} have an owner again after up to {span(worst[group_id])}"
            self._print_line(f"{clock(self._gaps_at):>12}      {group_id}  {again}")
