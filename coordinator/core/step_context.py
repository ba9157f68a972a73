"""What one call of ``Node.step`` carries through the core: the time, the settings, and the effects so far."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.cluster.features import ClusterFeatures
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.journal.events.base import Event
from rejoin.protocol.message import Response


class OwnToken:
    """Stands for this node itself, where it asks itself what it would ask another node. Its answer is no effect."""

    __slots__ = ("answered",)

    def __init__(self, answered: Callable[[Response], None]) -> None:
        self.answered = answered


class StepContext:
    """The node's hands: everything that decides takes the time from here and leaves its effects here."""

    __slots__ = ("deadlines", "effects", "features", "new_id", "now", "settings")

    def __init__(self, settings: Settings, new_id: Callable[[], str]) -> None:
        self.settings = settings
        self.features = ClusterFeatures(settings)
        self.new_id = new_id
        self.deadlines = Deadlines()
        self.now: Millis = 0
        self.effects: list[Effect] = []

    def reply(self, token: Token, response: Response) -> None:
        if type(token) is OwnToken:
            token.answered(response)
        else:
            self.effects.append(Reply(token, response))

    def emit(self, event: Event) -> None:
        self.effects.append(event)
