"""The timeline of a run: its events as lines for people."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rejoin.journal.events import client as consumer
from rejoin.journal.events import coordinator as coordinator
from rejoin.journal.events import simulation as simulation
from rejoin.journal.events import transactions
from rejoin.journal.events.base import Event
from rejoin.journal.formatting import cause_text, format_event, owned
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.ownership import Ownership

UUID: Final = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TWICE: Final = re.compile(r"\b(\S+) \(\1\)")
NOTABLE_GAP_MS: Final = 1_000
"""Shorter gaps in the ownership of partitions are not shown."""

LOST_AGAIN_MS: Final = 30_000
"""A consumer that loses its coordinator again within this time is not shown again."""

MANY: Final = 12
"""More members than this are counted instead of named."""


def short(text: str) -> str:
    """Member ids without their UUIDs; a name that then stands there twice is printed once."""
    return _TWICE.sub(r"\1", UUID.sub("", text))


def clock(at: Millis) -> str:
    """An instant: ``0:05:30.250``, or with days in front."""
    seconds, ms = divmod(at, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}d ' if days else ''}{hour}:{minute:02}:{second:02}.{ms:03}"


def span(ms: Millis) -> str:
    """A length of time as the timeline prints it."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 120_000:
        return f"{ms / 1_000:.1f} s"
    return f"{ms / 60_000:.1f} min"


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
        """Print which partitions have an owner again."""
        gaps = self._ownership().closed_gaps
        if not gaps:
            return
        notable: dict[str, list[int]] = {}
        worst = 0
        for partition, gap in gaps:
            if gap >= NOTABLE_GAP_MS:
                notable.setdefault(partition.topic, []).append(partition.partition)
                worst = max(worst, gap)
        gaps.clear()
        if notable:
            self._print_line(
                f"{clock(self._gaps_at):>12}      {owned(notable)} have an owner again after up to {span(worst)}"
            )


TIMELINE_EVENTS: Final = (
    coordinator.RebalanceStarted,
    coordinator.RebalanceCompleted,
    coordinator.MemberRemoved,
    coordinator.StaticMemberRestored,
    coordinator.GroupLoaded,
    coordinator.GroupEmptied,
    coordinator.AssignmentStoreFailed,
    coordinator.JoinPhaseRepeated,
    coordinator.AppendFailed,
    coordinator.CoreFailed,
    coordinator.TopicGrown,
    coordinator.TopicDeleted,
    coordinator.StaticMemberReplaced,
    coordinator.MemberFenced,
    transactions.TransactionPrepared,
    transactions.ProducerFenced,
    transactions.LastStableOffsetHeld,
    transactions.TransactionalIdExpired,
    simulation.ScenarioAction,
    simulation.ConsumerStarted,
    simulation.ConsumerStopped,
    simulation.ConsumerCrashed,
    simulation.ConsumerFailed,
    consumer.PollTimeoutExceeded,
    consumer.PartitionsLost,
    consumer.CoordinatorLost,
    consumer.AssignorFailed,
    consumer.PartitionsAssigned,
)
"""The events that a timeline needs."""


def line_of(event: Event) -> str | None:
    """An event as the timeline prints it, or none if it is not shown."""
    match event:
        case coordinator.RebalanceStarted():
            kind = "first rebalance" if event.initial else "rebalance"
            return f"{event.group_id}  {kind}: {cause_text(event.cause)}"
        case coordinator.RebalanceCompleted():
            moved = f", {event.moved} partition{'s'[: event.moved - 1]} moved" if event.moved else ""
            attempts = f" in {event.attempts} attempts" if event.attempts > 1 else ""
            shares = [f"{member_id} {_sum(topics)}" for member_id, topics in event.owned_after.items()]
            who = "; ".join(shares) if len(shares) <= MANY else f"{len(shares)} members"
            took = f"after {span(event.rebalance_ms)}{attempts}"
            return f"{event.group_id}  generation {event.generation} {took}{moved}: {who}"
        case (
            coordinator.MemberRemoved()
            | coordinator.StaticMemberRestored()
            | coordinator.GroupLoaded()
            | coordinator.GroupEmptied()
            | coordinator.AssignmentStoreFailed()
            | coordinator.JoinPhaseRepeated()
            | coordinator.AppendFailed()
            | coordinator.CoreFailed()
            | coordinator.TopicGrown()
            | coordinator.TopicDeleted()
        ):
            return format_event(event)
        case coordinator.StaticMemberReplaced():
            effect = "" if event.rebalance or event.state == "PreparingRebalance" else ", without a rebalance"
            return f"{event.group_id}  {event.group_instance_id} is back under a new member id{effect}"
        case coordinator.MemberFenced():
            return f"{event.group_id}  an older process of {event.group_instance_id} is fenced ({event.api})"
        case transactions.TransactionPrepared():
            # Commits, and aborts that clients ask for, are too many to be shown.
            return format_event(event) if event.ended_by in ("timeout", "fencing") else None
        case (
            transactions.ProducerFenced() | transactions.LastStableOffsetHeld() | transactions.TransactionalIdExpired()
        ):
            return format_event(event)
        case simulation.ScenarioAction():
            return f"* {event.action}"
        case simulation.ConsumerStarted():
            return f"* {event.client_id} starts" + (" again" if event.incarnation > 1 else "")
        case simulation.ConsumerStopped():
            return f"* {event.client_id} has stopped"
        case simulation.ConsumerCrashed():
            return f"* {event.client_id} is killed"
        case simulation.ConsumerFailed():
            return f"* {event.client_id} dies: {event.problem}"
        case consumer.PollTimeoutExceeded():
            return f"{event.client_id} did not poll for {span(event.max_poll_interval_ms)} and leaves the group"
        case consumer.PartitionsLost():
            return f"{event.client_id} learns that it has lost {_sum(event.partitions)}"
        case consumer.CoordinatorLost():
            return f"{event.client_id} lost the coordinator ({event.cause})"
        case consumer.AssignorFailed():
            return f"{event.client_id}  assignor {event.assignor} failed: {event.problem}"
        case _:
            return None


def _sum(topics: dict[str, list[int]]) -> str:
    shown = owned(topics)
    if len(shown) <= 60:
        return shown
    return f"{sum(len(indexes) for indexes in topics.values())} partitions of {len(topics)} topics"
