"""Reports of what has become of records, by runs: the leader makes events of them.

Neighbours of which everything is equal are one report. The window adds to the list, and the caller takes it.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.values import NO_MEMBER

LOG_START: Final = "log-start"
COMPACTED: Final = "compacted"
ABORTED: Final = "aborted"
DELIVERY_LIMIT: Final = "delivery-limit"
REJECT: Final = "reject"
GAP: Final = "gap"
"""Why records are archived."""

SESSION_CLOSED: Final = "session-closed"
DISCONNECTED: Final = "disconnected"
SESSION_EVICTED: Final = "session-evicted"
"""Why records are released."""


class Reported(IntEnum):
    """The kinds of reports. The word in brackets is what ``RunReport.word`` says."""

    ACQUIRED = auto()
    ACKNOWLEDGED = auto()
    """The acknowledgement is stored (why records are archived that are released)."""
    EXPIRED = auto()
    RELEASED = auto()
    """The holder's session is gone, and the release is stored (why)."""
    ARCHIVED = auto()
    """The records will not be delivered again (why)."""
    DEAD_LETTERED = auto()
    """The dead letters are written, or have failed (the error; empty: none)."""


class RunReport(NamedTuple):
    """A run of records with one fate. ``since``: when the holder acquired the first; ``until``: none is now.

    ``kinds``: acknowledge types, one for all records or one for each.
    """

    kind: Reported
    first_offset: int
    last_offset: int
    delivery_count: int
    member: str = NO_MEMBER
    word: str = ""
    since: Millis = 0
    until: Millis | None = None
    kinds: bytes = b""


def add_report(reports: list[RunReport], report: RunReport) -> None:
    """Add a report, to the last one if it goes on with it."""
    if reports:
        last = reports[-1]
        if last.last_offset + 1 == report.first_offset and last[3:] == report[3:] and _is_alike(last, report):
            reports[-1] = last._replace(last_offset=report.last_offset)
            return
    reports.append(report)


def _is_alike(last: RunReport, report: RunReport) -> bool:
    return last.kind is report.kind and len(report.kinds) <= 1
