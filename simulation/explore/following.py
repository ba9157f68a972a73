"""A kernel that follows a path which an exploration found, and then goes on in the ordinary order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.simulation.explore.choosing import Choosing, Kind
from rejoin.simulation.explore.kernel import ChoosingWorld
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import BadScenario

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation


NEVER: Final[Millis] = 1 << 60
"""An instant after all others."""


class NoSuchStep(BadScenario):
    """A path takes a choice that there is not: it is one of another world, or of another release."""

    def __init__(self, problem: str) -> None:
        super().__init__("", None, problem)


class FollowingWorld(ChoosingWorld):
    """The kernel of a run along a path."""

    __slots__ = ("_after", "_choosing", "_path", "_step")

    def __init__(self) -> None:
        super().__init__()
        self._choosing: Choosing | None = None
        self._path: tuple[int, ...] = ()
        self._step = 0
        self._after: Millis = 0

    def follow(self, scenario: Scenario, simulation: Simulation) -> None:
        """Follow the path of a scenario, once the simulation is begun."""
        assert scenario.explore is not None, "only a world has a path"
        self._choosing = Choosing(scenario, simulation, self)
        self._path = scenario.explore.path or ()
        self._after = scenario.explore.after

    def run(self, until: Millis) -> None:
        """Run to an instant. Raises :class:`NoSuchStep`."""
        if self.now < self._after:
            super().run(min(until, self._after))
        if until < self._after:
            return
        self.settle()
        while self._step < len(self._path):
            if not self._take_next(until):
                self.now = max(self.now, until)
                return
        super().run(until)

    def follow_to_the_end(self) -> None:
        """Take the whole path, and no step more. Raises :class:`NoSuchStep`."""
        if self.now < self._after:
            super().run(self._after)
        self.settle()
        while self._step < len(self._path):
            self._take_next(NEVER)

    def _take_next(self, until: Millis) -> bool:
        """Take the next step of the path, unless it comes later."""
        assert self._choosing is not None, "it follows a path once the simulation is made"
        choices, number = self._choosing.choices(), self._path[self._step]
        if not 0 <= number < len(choices):
            last = len(choices) - 1
            problem = f"explore.path.{self._step}: there is no choice {number}, and the last one is {last}"
            raise NoSuchStep(f"{problem}; expected a path that rejoin explore has found in this world")
        choice = choices[number]
        timed = self.timed()
        if choice.kind in (Kind.FIRE, Kind.OVERTAKE) and timed is not None and timed[0] > until:
            return False
        self._step += 1
        self._choosing.take(choice)
        return True
