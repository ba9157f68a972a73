"""A world: a small scenario, in which what happens when is left open, and how much of that is explored."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from rejoin.simulation.scenario.durations import Duration
from rejoin.simulation.scenario.fields import Part
from rejoin.simulation.scenario.model import Scenario, ScenarioMistake
from rejoin.simulation.scenario.reading import checked, keys_of, text_of

DRAWS: Final = ("any of", "any")


class Exploring(Part):
    """What is left open, beside the order of messages and of what is due at one instant. All faults are optional.

    ``faults`` bounds how many of them, events of the scenario included, one path may have.
    """

    depth: int = Field(default=20, ge=1, le=10_000)
    """How many choices after the beginning."""
    after: Duration = 0
    """The beginning: until then the world runs in the ordinary order, without events."""
    faults: int = Field(default=1, ge=0, le=20)
    lost_requests: bool = False
    """A connection may break before a request arrives."""
    lost_answers: bool = False
    """A connection may break before an answer arrives."""
    slow: bool = False
    """A timer may fire while messages travel."""
    appends: bool = False
    """Appends take time: what happens between one and its end is left open."""
    failing_appends: bool = False
    """An append may fail with NOT_ENOUGH_REPLICAS."""


class ExploredScenario(Scenario):
    """A scenario whose events may happen at any time from ``at`` on, once each, or not at all."""

    explore: Exploring = Exploring()

    @model_validator(mode="after")
    def _is_small_enough(self) -> Self:
        for name, topic in self.topics.items():
            if topic.records_per_second and topic.until is None:
                problem = f"topic {name} grows without end, so no state comes twice; say 'until' or leave its rate out"
                raise ScenarioMistake(("topics", name, "records_per_second"), problem)
        for number, event in enumerate(self.events):
            if event.on_average_every is not None:
                raise ScenarioMistake(
                    ("events", number, "on_average_every"),
                    f"events[{number}]: an explored event may happen at any time; leave 'on_average_every' out",
                )
        if self.explore.failing_appends and not self.explore.appends:
            raise ScenarioMistake(("explore", "failing_appends"), "failing_appends needs 'appends: true' beside it")
        return self


def read_world(path: Path) -> ExploredScenario:
    """Read a world's file. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    return world_from(text_of(path), str(path))


def world_from(text: str, where: str = "") -> ExploredScenario:
    """Read a world from text. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    data, lines = keys_of(text, where, "topics, groups, events and explore")
    data.setdefault("horizon", "1h")
    return checked(ExploredScenario, data, lines, where)
