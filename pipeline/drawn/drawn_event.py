"""An event that is drawn, as it comes from the table of events."""

from __future__ import annotations

from typing import NamedTuple

from rejoin.journal.events.base import Event


class DrawnEvent(NamedTuple):
    """An event of a row, and where and when it was."""

    at_ms: int
    seq: int
    node: str
    source: str
    event: Event
