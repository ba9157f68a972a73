"""The context of one call of ``Node.step``: the time, the settings, and the effects so far.

A request that takes long is handled in parts, each in its own step, so that others have their turn between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.cluster.features import ClusterFeatures
from rejoin.coordinator.core.effects import DeferredEvents, Effect, Reply
from rejoin.coordinator.core.inputs import Millis, Received, Token
from rejoin.coordinator.core.runtime.timers import Deadlines, TimerKey
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.coordinator.core.security.state import SecurityState
from rejoin.journal.events.base import Event
from rejoin.protocol.message import Response
from rejoin.protocol.types import TopicPartition


class PartTimer(IntEnum):
    """Due at once, and not in the step that sets it. At one instant it comes after all others."""

    NEXT_PART = 9_000


NEXT_PART: Final = TimerKey(PartTimer.NEXT_PART, TopicPartition("", -1))


class RequestPart(NamedTuple):
    """The next part of a request."""

    of: Received
    handle: Callable[[], None]


class DiskSpace(NamedTuple):
    """Sizes of a disk, in bytes."""

    total: int
    usable: int


class OwnToken:
    """The token of a node's request to itself. Its response is not an effect."""

    __slots__ = ("answered",)

    def __init__(self, answered: Callable[[Response], None]) -> None:
        self.answered = answered


class StepContext:
    """The node's hands: everything that decides takes the time from here and leaves its effects here."""

    __slots__ = (
        *("deadlines", "defers_events", "disk_space", "effects", "features", "new_id", "now", "parts", "security"),
        "settings",
    )

    def __init__(
        self,
        settings: Settings,
        new_id: Callable[[], str],
        *,
        defers_events: bool = False,
        file_users: FileUsers = NO_USERS,
    ) -> None:
        self.settings = settings
        self.defers_events = defers_events
        self.features = ClusterFeatures(settings)
        self.security = SecurityState(settings, file_users)
        self.new_id = new_id
        self.disk_space: Callable[[], DiskSpace] | None = None
        """The disk that logs are on; none where they are in memory, or in a database elsewhere."""
        self.deadlines = Deadlines()
        self.now: Millis = 0
        self.effects: list[Effect] = []
        self.parts: deque[RequestPart] = deque()
        """Remaining parts of long requests; each step that fires timers handles one of them."""

    def reply(self, token: Token, response: Response) -> None:
        if type(token) is OwnToken:
            token.answered(response)
        else:
            self.effects.append(Reply(token, response))

    def take_replies(self, since: int) -> list[Reply]:
        """Take back the replies among the effects from an index on, to give them later."""
        taken = [effect for effect in self.effects[since:] if isinstance(effect, Reply)]
        self.effects[since:] = [effect for effect in self.effects[since:] if not isinstance(effect, Reply)]
        return taken

    def emit(self, event: Event) -> None:
        self.effects.append(event)

    def emit_deferred(self, events: DeferredEvents) -> None:
        """Emit events that may be made later."""
        if self.defers_events:
            self.effects.append(events)
        else:
            self.effects += events.make()

    def go_on_later(self, part: RequestPart) -> None:
        """Handle the next part of a request when others have had their turn."""
        self.parts.append(part)
        self.deadlines.set(NEXT_PART, self.now)
