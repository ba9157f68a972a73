"""Random scripts: one probe after the other, drawn from a table. The seed is the script's name.

The requests of a random script depend on nothing but its seed and the answers.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

Probe: TypeAlias = Callable[..., Awaitable[Any]]
Table: TypeAlias = Sequence[tuple[Probe, int]]
"""Probes with their weights."""


def seeded(seed: int) -> random.Random:
    """A generator whose numbers follow from a seed."""
    return random.Random(seed)


class RandomPlay(ABC):
    """Plays ``length`` steps of a random script. ``draw`` decides whatever the answers leave open."""

    length: ClassVar[int]

    def __init__(self, play: Play) -> None:
        self.play = play
        self.draw = random.Random(play.script.name)

    async def run(self) -> None:
        await self.begin()
        for _ in range(self.length):
            await self.step()
        await self.end()

    async def begin(self) -> None:  # noqa: B027
        """Send the requests ahead of the random ones, if there are any."""

    @abstractmethod
    async def step(self) -> None:
        """Draw a probe, and make it."""

    @abstractmethod
    async def end(self) -> None:
        """Look at the outcome."""

    def pick(self, table: Table) -> Probe:
        """One probe of a table, each by its weight."""
        (probe,) = self.draw.choices([probe for probe, _ in table], [weight for _, weight in table])
        return probe


def random_script(name: str, make: Callable[[Play], RandomPlay], **topics: Any) -> Script:
    """The script of a seed."""

    async def run(play: Play) -> None:
        await make(play).run()

    return Script(name, run, **topics)
