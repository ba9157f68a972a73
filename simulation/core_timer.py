"""The timer of a core that an actor drives."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.simulation.kernel import Actor, Lane, Millis


class CoreTimer:
    """Calls an actor when its core's deadline is over, after the actor's pause if it is paused.

    A deadline that moves to a later instant leaves its call on the heap; when that call runs, the deadline is asked
    again. Only a deadline that moves to an earlier instant needs another call.
    """

    __slots__ = ("_actor", "_deadline", "_fire", "_queued_at", "lane")

    def __init__(
        self, actor: Actor, lane: Lane, deadline: Callable[[], Millis | None], fire: Callable[[], None]
    ) -> None:
        self.lane = lane
        self._actor = actor
        self._deadline = deadline
        self._fire = fire
        self._queued_at: Millis | None = None

    def reset(self) -> None:
        """Forget the call that is queued."""
        self._queued_at = None

    def update(self) -> None:
        """Queue a call if the core has an earlier deadline now."""
        due = self._deadline()
        if due is not None and (self._queued_at is None or due < self._queued_at):
            self._queue(max(due, self._actor.world.now))

    def _queue(self, at: Millis) -> None:
        self._queued_at = at
        self._actor.world.at(at, self.lane, self._on_due, at)

    def _on_due(self, at: Millis) -> None:
        if at != self._queued_at:
            return
        actor = self._actor
        if actor.paused_until > actor.world.now:
            self._queue(actor.paused_until)
            return
        self._queued_at = None
        due = self._deadline()
        if due is not None and due <= actor.world.now:
            self._fire()
        else:
            self.update()
