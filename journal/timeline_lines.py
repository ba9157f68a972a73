"""Events as lines for people, as a timeline prints them."""

from __future__ import annotations

import re
from typing import Final

from rejoin.journal.events import client as consumer
from rejoin.journal.events import coordinator, simulation, transactions
from rejoin.journal.events.base import Event
from rejoin.journal.formatting import cause_text, format_event, owned

UUID: Final = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TWICE: Final = re.compile(r"\b(\S+) \(\1\)")

MANY: Final = 12
"""More members than this are counted instead of named."""


def short(text: str) -> str:
    """Member ids without their UUIDs; a name that then stands there twice is printed once."""
    return _TWICE.sub(r"\1", UUID.sub("", text))


def span(ms: int) -> str:
    """A length of time as the timeline prints it."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 120_000:
        return f"{ms / 1_000:.1f} s"
    return f"{ms / 60_000:.1f} min"


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
            # Clients' logs do not say how long it took, nor what each member owns.
            took = f" after {span(event.rebalance_ms)}" if event.rebalance_ms or who else ""
            owners = f": {who}" if who else ""
            return f"{event.group_id}  generation {event.generation}{took}{attempts}{moved}{owners}"
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
            return f"{event.client_id} lost the coordinator{f' ({event.cause})' if event.cause else ''}"
        case consumer.AssignorFailed():
            return f"{event.client_id}  assignor {event.assignor} failed: {event.problem}"
        case _:
            return None


def _sum(topics: dict[str, list[int]]) -> str:
    shown = owned(topics)
    if len(shown) <= 60:
        return shown
    return f"{sum(len(indexes) for indexes in topics.values())} partitions of {len(topics)} topics"
