"""Lives of records of a share group on one node, as rows of a journal: each with something wrong, or nearly so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.share_groups import SharePartitionsInitialized
from rejoin.journal.events.simulation import RunEnded
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.share.test_events import RENEW, Watched
from tests.coordinator.core.share.test_sharing import ACCEPT, REJECT, RELEASE

RUN = "run"
GROUP = "g"


class RecordedShares(Watched):
    """A node with the topic ``jobs`` and the group ``g``, which keeps when each event came."""

    def __init__(self, configs: dict[str, str] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.timed: list[tuple[int, Event]] = [(self.driver.now, each) for each in self.driver.events]
        keep = self.driver.on_event

        def on_event(event: Event) -> None:
            keep(event)
            self.timed.append((self.driver.now, event))

        self.driver.on_event = on_event  # type: ignore[method-assign]
        if configs:
            self.configure(configs)

    def journal(self) -> str:
        """All events as lines of a journal."""
        encoder = RowEncoder(RUN, "coordinator", "1")
        lines = [encoder.encode(number, at, event) for number, (at, event) in enumerate(self.timed, 1)]
        lines.append(RowEncoder(RUN, "simulation", "lab").encode(1, self.driver.now, RunEnded(seed=1)))
        return "".join(line.decode() + "\n" for line in lines)

    def handles(self, member: str, *, verdict: Callable[[int], int] = lambda _: ACCEPT, ms: int = 1_000) -> None:
        """Fetch, work for so long, and acknowledge each record by its offset."""
        rows = self.acquires(member)
        self.driver.elapse(ms)
        for first, last, _ in rows:
            for offset in range(first, last + 1):
                assert self.acknowledges(member, offset, offset, verdict(offset)) == ErrorCode.NONE


def healthy(node: RecordedShares) -> None:
    """Two members that accept all records, one of them after a release."""
    node.joins("b")
    node.writes(6)
    for member in ("a", "b"):
        rows = node.acquires(member, maxRecords=3)
        node.driver.elapse(800)
        for first, last, _ in rows:
            assert node.acknowledges(member, first, last, ACCEPT) == ErrorCode.NONE
    node.writes(1)
    node.handles("a", verdict=lambda _: RELEASE)
    node.handles("b")


def slow_handler(node: RecordedShares, needs_ms: int = 41_000) -> None:
    """One member whose handler needs longer than the lock, until the record is delivered no more."""
    node.writes(1)
    while node.acquires("a"):
        node.driver.elapse(needs_ms)
        node.acknowledges("a", 0, 0, ACCEPT)
    node.writes(1)
    node.handles("a")


def renewing_handler(node: RecordedShares) -> None:
    """A handler that takes as long, with a lock that is renewed."""
    for offset in range(3):
        node.writes(1)
        node.acquires("a")
        node.driver.elapse(20_000)
        assert node.acknowledges_as("a", offset, [RENEW], renews=True) == ErrorCode.NONE
        node.driver.elapse(21_000)
        assert node.acknowledges("a", offset, offset, ACCEPT) == ErrorCode.NONE


def never_acknowledges(node: RecordedShares) -> None:
    """A member that goes on fetching, and acknowledges nothing."""
    node.writes(1)
    for _ in range(3):
        node.acquires("a", maxWaitMs=60_000)


def dies(node: RecordedShares) -> None:
    """A member that acquires, and is never seen again; another one takes its records."""
    node.joins("b")
    node.writes(2)
    node.acquires("a")
    node.driver.elapse(31_000)
    node.handles("b")
    node.driver.elapse(700_000)


def poison(node: RecordedShares, verdict: int = RELEASE) -> None:
    """One record that the handler fails on, among others."""
    node.joins("b")
    node.writes(8)
    for number in range(5):
        node.handles("ab"[number % 2], verdict=lambda offset: verdict if offset == 3 else ACCEPT)


def failing_handler(node: RecordedShares) -> None:
    """A handler that fails on everything, as something else is away: no record is to blame."""
    node.writes(4)
    for _ in range(3):
        node.handles("a", verdict=lambda _: RELEASE)


def held_window(node: RecordedShares, times: int = 4) -> None:
    """One member that renews its lock on the first record, while another one works on."""
    node.joins("b")
    node.writes(1)
    assert node.acquires("a") == [(0, 0, 1)]
    for _ in range(times):
        node.writes(5)
        node.handles("b", ms=10_000)
        assert node.acknowledges_as("a", 0, [RENEW], renews=True) == ErrorCode.NONE
    assert node.acknowledges("a", 0, 0, ACCEPT) == ErrorCode.NONE


def unread_window(node: RecordedShares) -> None:
    """A record that is released, and that no member fetches again."""
    node.writes(2)
    node.acquires("a")
    node.acknowledges("a", 0, 1, RELEASE)
    node.driver.elapse(90_000)


def full_window(node: RecordedShares) -> None:
    """More records in flight than a window may have."""
    node.writes(120)
    for _ in range(2):
        node.acquires("a", maxRecords=100)
    assert node.acknowledges("a", 0, 99, ACCEPT) == ErrorCode.NONE


def skipped(node: RecordedShares) -> None:
    """A group whose first member comes after the records."""
    node.writes(7)
    node.acquires("a")


def not_initialized(node: RecordedShares) -> None:
    """The share coordinators do not answer."""
    node.driver.on_event(SharePartitionsInitialized(group_id=GROUP, partitions={"jobs": [0]}, error="NOT_COORDINATOR"))


def not_stored(node: RecordedShares) -> None:
    """The log of the share coordinator takes no writes while a member acknowledges."""
    node.writes(1)
    node.acquires("a")
    node.driver.logs.error = ErrorCode.INVALID_RECORD
    node.acknowledges("a", 0, 0, ACCEPT)
    node.driver.logs.error = None
    node.handles("a")


def refused_letters(node: RecordedShares) -> None:
    """A record is rejected, and the topic for dead letters is not there."""
    node.writes(2)
    node.handles("a", verdict=lambda offset: REJECT if offset == 0 else ACCEPT)


def lines_of(life: Callable[[RecordedShares], None], configs: dict[str, str] | None = None, **settings: Any) -> str:
    """A life as a journal."""
    node = RecordedShares(configs, **settings)
    life(node)
    return node.journal()
