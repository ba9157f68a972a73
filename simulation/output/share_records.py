"""Counts what became of the records of share groups: accepted, late, delivered again, archived, dead, out of order.

The counts come from the events of the partitions' leaders alone, so a journal of a service gives the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.journal.events.share_partitions import (
    ShareLocksExpired,
    SharePartitionEvent,
    SharePartitionLoaded,
    ShareRecordsAcknowledged,
    ShareRecordsAcquired,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareRecordsEvent,
    ShareRecordsReleased,
)
from rejoin.simulation.kernel import EventHandlers, Millis


@dataclass(slots=True)
class ShareLedger:
    """One share-partition."""

    first: int = 0
    """The offset at which the group began to read."""
    deliveries: dict[int, int] = field(default_factory=dict)
    """Highest delivery count by offset."""
    accepted: dict[int, None] = field(default_factory=dict)
    """Offsets in the order in which they were first accepted."""
    gone: dict[int, None] = field(default_factory=dict)
    """Offsets that are archived without having been accepted."""
    dead: dict[int, None] = field(default_factory=dict)
    """Offsets that have their dead letter."""
    highest: int = -1
    """The highest offset that was accepted."""
    late: int = 0
    twice: int = 0
    out_of_order: int = 0
    farthest: int = 0
    """The largest distance of an accepted record to one behind it that was accepted sooner, in offsets."""
    expired: int = 0
    given_back: int = 0
    """Records that were released, by their handler or with a session."""

    @property
    def settled(self) -> int:
        """Records that will not be delivered again, and those before the first."""
        return self.first + len(self.accepted) + len(self.gone)

    def accept(self, offset: int, *, is_late: bool) -> None:
        """Note that a member accepted a record."""
        if offset in self.accepted:
            self.twice += 1
            return
        self.accepted[offset] = None
        self.late += is_late
        if offset < self.highest:
            self.out_of_order += 1
            self.farthest = max(self.farthest, self.highest - offset)
        self.highest = max(self.highest, offset)


@dataclass(slots=True)
class ShareSummary:
    """All records of one share group."""

    deliveries: dict[int, int] = field(default_factory=dict)
    """Number of records by delivery count."""
    archived: int = 0
    dead: int = 0
    expired: int = 0
    given_back: int = 0
    out_of_order: int = 0
    farthest: int = 0


class ShareAccounting:
    """The ledgers of all share groups. ``written_by`` gives the end of a partition's log at an instant."""

    def __init__(self, written_by: Callable[[str, int, Millis], int], late_ms: Millis) -> None:
        self._written_by = written_by
        self._late_ms = late_ms
        self.ledgers: dict[tuple[str, str, int], ShareLedger] = {}
        self.handlers: EventHandlers = {
            SharePartitionLoaded: self._loaded,
            ShareRecordsAcquired: self._acquired,
            ShareRecordsAcknowledged: self._acknowledged,
            ShareRecordsReleased: self._given_back,
            ShareLocksExpired: self._expired,
            ShareRecordsArchived: self._archived,
            ShareRecordsDeadLettered: self._dead_lettered,
        }
        """Handlers by event class."""

    def of_group(self, group_id: str) -> list[ShareLedger]:
        """The ledgers of one group."""
        return [ledger for (group, _, _), ledger in self.ledgers.items() if group == group_id]

    def settled(self, group_id: str, topic: str, partition: int) -> int:
        """Offsets of a share-partition that will not be delivered again, or not at all."""
        ledger = self.ledgers.get((group_id, topic, partition))
        return 0 if ledger is None else ledger.settled

    def _loaded(self, event: SharePartitionLoaded, _: Millis) -> None:
        ledger = self._ledger(event)
        if event.reset is not None:
            ledger.first = event.start_offset

    def _acquired(self, event: ShareRecordsAcquired, _: Millis) -> None:
        ledger = self._ledger(event)
        for offset in _offsets(event):
            ledger.deliveries[offset] = max(event.delivery_count, ledger.deliveries.get(offset, 0))

    def _acknowledged(self, event: ShareRecordsAcknowledged, now: Millis) -> None:
        ledger = self._ledger(event)
        if event.type == "release":
            ledger.given_back += len(_offsets(event))
        elif event.type == "accept":
            late = self._written_by(event.topic, event.partition, now - self._late_ms)
            for offset in _offsets(event):
                ledger.accept(offset, is_late=offset < late)

    def _given_back(self, event: ShareRecordsReleased, _: Millis) -> None:
        self._ledger(event).given_back += len(_offsets(event))

    def _expired(self, event: ShareLocksExpired, _: Millis) -> None:
        self._ledger(event).expired += len(_offsets(event))

    def _archived(self, event: ShareRecordsArchived, _: Millis) -> None:
        self._ledger(event).gone.update(dict.fromkeys(_offsets(event)))

    def _dead_lettered(self, event: ShareRecordsDeadLettered, _: Millis) -> None:
        ledger = self._ledger(event)
        ledger.gone.update(dict.fromkeys(_offsets(event)))
        if event.error is None:
            ledger.dead.update(dict.fromkeys(_offsets(event)))

    def _ledger(self, event: SharePartitionEvent) -> ShareLedger:
        return self.ledgers.setdefault((event.group_id, event.topic, event.partition), ShareLedger())


def _offsets(event: ShareRecordsEvent) -> range:
    return range(event.first_offset, event.last_offset + 1)


def summarise_shares(ledgers: list[ShareLedger]) -> ShareSummary:
    """The numbers of one group."""
    counts = Counter(count for ledger in ledgers for count in ledger.deliveries.values())
    return ShareSummary(
        dict(sorted(counts.items())),
        sum(len(each.gone) for each in ledgers),
        sum(len(each.dead) for each in ledgers),
        sum(each.expired for each in ledgers),
        sum(each.given_back for each in ledgers),
        sum(each.out_of_order for each in ledgers),
        max((each.farthest for each in ledgers), default=0),
    )


def delivered(counts: dict[int, int]) -> str:
    """Numbers of records by delivery count: ``1x 240, 2x 12``."""
    return ", ".join(f"{count}x {records}" for count, records in counts.items()) or "none"


SHARE_ROWS: Final[tuple[tuple[str, Callable[[ShareSummary], Any]], ...]] = (
    ("records delivered", lambda share: delivered(share.deliveries)),
    ("  locks expired", lambda share: share.expired),
    ("  given back", lambda share: share.given_back),
    ("  archived", lambda share: share.archived),
    ("  dead letters", lambda share: share.dead),
    ("  out of order", lambda share: share.out_of_order),
    ("  farthest behind", lambda share: share.farthest),
)
"""The lines of a share group's summary: name and value."""
