"""States of one form are one state: whatever can happen to one of them leads the other to the same forms."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import Final

import pytest

from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import WORLDS as WORLDS_OF_REJOIN
from rejoin.simulation.explore.world import read_world
from rejoin.simulation.scenario.model import Scenario
from tests.simulation.explore.small_worlds import WORLDS, small_world

STATES = 15
OF_REJOIN: Final = {
    "share_handlers_that_hang": 20,
    "streams_group_and_a_failover": 8,
    **dict.fromkeys(("streams_group_and_a_crash", "static_streams_instance_comes_back"), 10),
    "topic_goes_under_a_group": 60,
    "topic_goes_under_a_consumer_group": 60,
    "topic_goes_with_its_offsets": 60,
}
"""Worlds that come with Rejoin, and how many states are tried."""


def successors(run: ExploredRun) -> list[ExploredRun]:
    """A run for each choice."""
    made = []
    for choice in run.choices():
        other = run.copy()
        other.take(choice)
        made.append(other)
    return made


def first_difference(one: ExploredRun, other: ExploredRun) -> str:
    """Where the forms of two runs begin to differ."""
    forms = one.form(), other.form()
    for at, pair in enumerate(zip_longest(*forms)):
        if pair[0] != pair[1]:
            return f"{forms[0][max(0, at - 5) : at]}, then {pair[0]!r} or {pair[1]!r}"
    return "none"


def world_of(name: str) -> Scenario:
    """A small world, or one that comes with Rejoin."""
    return small_world(name) if name in WORLDS else read_world(WORLDS_OF_REJOIN / f"{name}.yaml")


@pytest.mark.parametrize(("name", "states"), [*dict.fromkeys(WORLDS, STATES).items(), *OF_REJOIN.items()])
def test_states_of_one_form_lead_to_the_same_forms(name: str, states: int) -> None:
    root = ExploredRun(world_of(name))
    frontier = [root]
    after = {root.digest(): successors(root)}
    merged = 0
    while frontier and len(after) < states:
        following = []
        for run in frontier:
            for made in after[run.digest()]:
                found = successors(made)
                known = after.setdefault(made.digest(), found)
                if known is found:
                    following.append(made)
                    continue
                merged += 1
                mine, others = ({each.digest(): each for each in runs} for runs in (known, found))
                assert Counter(each.digest() for each in known) == Counter(each.digest() for each in found), (
                    f"{name}: "
                    + "; ".join(
                        first_difference(mine[one], others[other])
                        for one, other in zip(mine.keys() - others, others.keys() - mine, strict=False)
                    )
                )
        frontier = following
    assert merged


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        *dict.fromkeys(("classic", "static", "consumer", "failover"), 60).items(),
        ("share_group_and_a_crash", 400),
        ("static_streams_instance_comes_back", 700),
        ("streams_group_and_a_crash", 60),
    ],
)
def test_a_group_at_rest_returns_to_a_state(name: str, seconds: int) -> None:
    run = ExploredRun(world_of(name))
    run.world.run(run.world.now + 1_000 * seconds)
    seen = {run.digest()}
    for _ in range(20):
        timed = run.world.timed()
        assert timed is not None, "heartbeats go on"
        run.world.run(timed[0])
        if run.digest() in seen:
            return
        seen.add(run.digest())
    pytest.fail(f"{name}: no state came twice")
