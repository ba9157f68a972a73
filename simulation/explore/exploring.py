"""The part of a scenario that leaves its order open: what is explored, or a path that an exploration found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from rejoin.simulation.explore.free.spec import FreeSpec
from rejoin.simulation.scenario.durations import Duration
from rejoin.simulation.scenario.fields import Part
from rejoin.simulation.scenario.mistakes import Mistake

if TYPE_CHECKING:
    from rejoin.simulation.scenario.model import Scenario


class Exploring(Part):
    """Openness beside the order of messages and of calls that are due at one instant. All faults are optional.

    The events of the scenario may happen at any time from their ``at`` on, once each, or not at all. ``faults`` bounds
    how many of them and of the other faults one path may have.
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
    symmetry: bool = False
    """States that differ only in which of a group's equal members is which are one state. Such members send one client
    id."""
    free: FreeSpec | None = None
    """Clients that may send anything at any time, beside the groups' consumers."""
    path: tuple[int, ...] | None = None
    """Which of the choices is taken, one number for each step: a run of the scenario follows this path, and goes on in
    the ordinary order."""


def exploring_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Mistakes that keep a scenario from being explored."""
    explore = scenario.explore
    if explore is None:
        return
    for name, topic in scenario.topics.items():
        if topic.records_per_second and topic.until is None:
            problem = f"topic {name} grows without end, so no state comes twice; say 'until' or leave its rate out"
            yield Mistake(("topics", name, "records_per_second"), problem)
    for number, event in enumerate(scenario.events):
        if event.on_average_every is not None:
            yield Mistake(
                ("events", number, "on_average_every"),
                f"events[{number}]: an explored event may happen at any time; leave 'on_average_every' out",
            )
    if explore.failing_appends and not explore.appends:
        yield Mistake(("explore", "failing_appends"), "failing_appends needs 'appends: true' beside it")
    if explore.free is not None and explore.free.group not in scenario.groups:
        group = explore.free.group
        problem = f"explore.free: there is no group {group!r}; give one with 'consumers: 0' under groups"
        yield Mistake(("explore", "free", "group"), problem)
