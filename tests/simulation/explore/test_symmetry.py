"""Equal members change places: fewer states, the same findings, and merged states go on in the same way."""

from __future__ import annotations

from collections import Counter

import pytest

from rejoin.simulation.explore.explorer import Exploration, explore
from rejoin.simulation.explore.paths import transcript_along
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import world_from
from rejoin.simulation.scenario.model import Scenario
from rejoin.transcript.player import play
from tests.simulation.explore.hunting import all_mutations
from tests.simulation.explore.test_merging import successors

JOIN = """
topics: {t: {partitions: 2}}
groups: {g: {topics: [t], consumers: 2, session_timeout: 9s, max_poll_interval: 20s}}
explore: {faults: 0, symmetry: true}
"""
THREE = JOIN.replace("consumers: 2", "consumers: 3")
LOST = JOIN.replace("faults: 0", "faults: 1, lost_answers: true, lost_requests: true")
EVENTS = """
events:
- {at: 0, crash: {who: g-1}}
"""
MUTATIONS = {each.name: each for each in all_mutations()}


def both(world: Scenario, depth: int, states: int | None = None) -> list[Exploration]:
    """A world explored without symmetry and with it."""
    return [explore(world, depth=depth, most_states=states, liveness=False, symmetry=each) for each in (False, True)]


@pytest.mark.parametrize(("text", "depth", "times"), [(JOIN, 9, 1.8), (LOST, 5, 1.6), (THREE, 4, 3.2)])
def test_members_that_change_places_count_once(text: str, depth: int, times: float) -> None:
    apart, merged = both(world_from(text), depth)
    assert times * merged.states < apart.states <= 6 * merged.states
    assert len(merged.by_depth) == len(apart.by_depth)


@pytest.mark.parametrize(("text", "states"), [(THREE, 6), (LOST, 12)])
def test_states_that_differ_by_a_change_of_places_lead_to_the_same_states(text: str, states: int) -> None:
    root = ExploredRun(world_from(text))
    first = {root.digest(): (root.form(), successors(root))}
    frontier, merged = [root], 0
    while len(first) < states:
        for made in first[frontier.pop(0).digest()][1]:
            found = successors(made)
            form, known = first.setdefault(made.digest(), (made.form(), found))
            if known is found:
                frontier.append(made)
                continue
            merged += form != made.form()
            assert Counter(each.digest() for each in known) == Counter(each.digest() for each in found)
    assert merged, "some of them are another state with members in other places"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("every_member_gets_the_leaders_share", JOIN),
        ("members_are_added_without_an_id_of_their_own", JOIN),
    ],
)
def test_a_broken_rule_is_found_after_as_many_steps(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name].apply(monkeypatch)
    apart, merged = (found.counterexample for found in both(world_from(text), 20))
    assert apart is not None
    assert merged is not None
    assert (merged.check, len(merged.path)) == (apart.check, len(apart.path))


def test_members_that_are_named_keep_their_places() -> None:
    """An event that names one distinguishes it, and so does a protocol in which ids are made by number."""
    for text in (
        JOIN + EVENTS.replace("crash: {who: g-1}", "scale: {group: g, to: 1}"),
        JOIN + EVENTS.replace("who: g-1", "who: any-of-g"),
        JOIN.replace("consumers: 2", "consumers: 2, static: true"),
        JOIN.replace("consumers: 2, session_timeout: 9s", "consumers: 2, protocol: consumer"),
        JOIN.replace("faults: 0", "faults: 1") + EVENTS,
    ):
        apart, merged = both(world_from(text), 4)
        assert merged == apart


def test_a_path_with_one_client_id_is_a_transcript() -> None:
    world = world_from(JOIN)
    run, path = ExploredRun(world), []
    for _ in range(20):
        path.append(len(run.choices()) - 1)
        run.take(run.choices()[-1])
    text = transcript_along(world, tuple(path))
    assert "CompletingRebalance -> Stable" in play(text).text
