"""Periodic work of a consumer up to now: heartbeats, and looks for records that are not there.

Each is a function of time: it comes once in a while, and the delay of a message is a function of its connection and the
instant (:class:`rejoin.simulation.network.Latency`). No heartbeat is sent before the one before it is answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.simulation.kernel import Lane, Millis, World
from rejoin.simulation.network import ClientConnection


@dataclass(frozen=True, slots=True)
class SentHeartbeat:
    """A heartbeat: when it is sent, when it arrives at the coordinator, and when its answer comes back."""

    sent_at: Millis
    arrives_at: Millis
    answered_at: Millis

    @classmethod
    def of(cls, connection: ClientConnection, sent_at: Millis) -> SentHeartbeat:
        arrives_at = connection.arrival(sent_at)
        return cls(sent_at, arrives_at, connection.answer_arrival(arrives_at))


@dataclass(slots=True)
class Heartbeats:
    """The heartbeats by now of those that are due at an instant and periodically after it."""

    due_at: Millis
    """When the next one is sent, or when that was sent which has no answer yet."""
    received: SentHeartbeat | None = None
    """The last one that the coordinator has received."""
    answered: SentHeartbeat | None = None
    """The last one that has its answer."""
    unanswered: SentHeartbeat | None = None
    """The one that has no answer yet."""

    @classmethod
    def by_now(
        cls, world: World, connection: ClientConnection, timer: Lane, first: Millis, every: Millis
    ) -> Heartbeats:
        """Heartbeats of a consumer whose timer has a lane; the first is due at ``first``."""
        last = last_before_now(world, timer, first, every)
        if last is None:
            return cls(first)
        sent = SentHeartbeat.of(connection, last)
        before = SentHeartbeat.of(connection, last - every) if last > first else None
        received = sent if world.is_past(sent.arrives_at, connection.request_lane) else before
        if world.is_past(sent.answered_at, connection.answer_lane):
            return cls(last + every, received, sent)
        return cls(last, received, before, sent)


def last_before_now(world: World, lane: Lane, first: Millis, every: Millis) -> Millis | None:
    """The last that has happened of what happens at ``first`` and then periodically, if any has."""
    if not world.is_past(first, lane):
        return None
    last = first + (world.now - first) // every * every
    return last if world.is_past(last, lane) else last - every


def last_answered_before(
    connection: ClientConnection, first: Millis, every: Millis, end: Millis
) -> SentHeartbeat | None:
    """The last heartbeat whose answer comes before an instant, if the first one's does."""
    for sent_at in range(first + max(0, end - first) // every * every, first - 1, -every):
        sent = SentHeartbeat.of(connection, sent_at)
        if sent.answered_at < end:
            return sent
    return None
