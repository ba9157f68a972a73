"""Worlds: every state once, a shortest counterexample, and a path that others play."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoin.coordinator.core.groups.classic import rebalance
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.following import NoSuchStep
from rejoin.simulation.explore.liveness import NO_WAY
from rejoin.simulation.explore.paths import along, text_along, transcript_along
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import WORLDS, read_world, world_from
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from rejoin.simulation.simulation import Simulation
from rejoin.simulation.web.session import run_of
from rejoin.transcript.player import play
from tests.simulation.search.mutations import every_member_leads

ONE = """
topics: {t: {partitions: 1}}
groups:
  g: {topics: [t], consumers: 1, session_timeout: 9s}
coordinator: {settings: {group.initial.rebalance.delay.ms: 0}}
explore: {depth: 100, faults: 0}
"""

CRASH = """
topics: {t: {partitions: 1}}
groups:
  g: {topics: [t], consumers: 1, session_timeout: 9s, max_poll_interval: 20s}
coordinator: {settings: {group.initial.rebalance.delay.ms: 0}}
events:
- {at: 0, crash: {who: g-1, down: 1s}}
explore: {depth: 12, faults: 1, lost_answers: true}
"""


def test_the_orders_of_one_member_meet_again() -> None:
    found = explore(world_from(ONE), depth=12)
    assert found.counterexample is None
    assert max(found.by_depth) == 2, "the first two requests go to two connections"
    assert found.by_depth[-1] == 1


def test_the_orders_of_two_members_meet_again() -> None:
    two = world_from(ONE.replace("consumers: 1", "consumers: 2"))
    found = explore(two, depth=6)
    assert found.counterexample is None
    assert found.states < found.edges + 1 < 2**7, "states are met by several paths"


def test_an_exploration_is_the_same_each_time() -> None:
    assert explore(world_from(CRASH), depth=7) == explore(world_from(CRASH), depth=7)


def test_a_copy_goes_on_by_itself() -> None:
    run = ExploredRun(world_from(CRASH))
    before = run.digest()
    copy = run.copy()
    while copy.choices() and copy.now < 1_000:
        copy.take(copy.choices()[0])
    assert run.digest() == before
    assert copy.digest() != before
    again = run.copy()
    for _ in range(5):
        run.take(run.choices()[0])
        again.take(again.choices()[0])
        assert run.digest() == again.digest()


def test_a_counterexample_is_a_path_that_others_play(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_from(ONE.replace("consumers: 1", "consumers: 2"))
    every_member_leads(monkeypatch)
    found = explore(world, depth=40, most_states=2_000)
    broken = found.counterexample
    assert broken is not None
    assert broken.check == "a_generation_has_two_leaders"
    assert len(broken.labels) == len(broken.path)
    assert broken.labels[-1].endswith("time passes: node-1"), "the join phase ends"
    text = text_along(world, broken.path)
    assert scenario_from(text).explore == along(world, broken.path).explore
    transcript = transcript_along(world, broken.path)
    assert transcript.startswith("# a generation has two leaders")
    wrong = play(transcript).text
    monkeypatch.undo()
    assert play(transcript).text != wrong, "the transcript distinguishes the broken rule from the right one"
    assert explore(world, depth=8).counterexample is None


def test_a_group_that_never_settles_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: rebalance.Rebalancer, group: object) -> None:
        """The phase does not end."""

    monkeypatch.setattr(rebalance.Rebalancer, "finish_if_all_joined", forgotten)
    monkeypatch.setattr(rebalance.Rebalancer, "join_timer_fired", forgotten)
    found = explore(world_from(ONE.replace("session_timeout", "max_poll_interval: 20s, session_timeout")), depth=4)
    assert found.counterexample is not None
    assert found.counterexample.check == NO_WAY
    assert found.counterexample.path == (), "not even the beginning has a way"


def test_a_run_follows_its_path() -> None:
    world = world_from(CRASH)
    run, path = ExploredRun(world), []
    for number in (0, 0, 0, 1, 0):
        path.append(number)
        run.take(run.choices()[number])
    followed = Simulation(along(world, tuple(path)))
    followed.begin()
    followed.world.run(60_000)
    assert followed.world.now == 60_000
    group = followed.cluster.nodes[0].group("g")
    assert group is not None
    assert group.state == "Stable", "it goes on in the ordinary order"


def test_a_path_of_another_world_is_refused() -> None:
    simulation = Simulation(along(world_from(ONE), (7,)))
    simulation.begin()
    with pytest.raises(NoSuchStep, match=r"explore\.path\.0: there is no choice 7, and the last one is 0"):
        simulation.world.run(1_000)


@pytest.mark.parametrize("path", sorted(WORLDS.glob("*.yaml")), ids=lambda path: path.stem)
def test_copies_along_a_path_change_no_form(path: Path) -> None:
    copied, plain = ExploredRun(read_world(path)), ExploredRun(read_world(path))
    for step in range(12):
        choices = plain.choices()
        if not choices:
            break  # the only member has stopped
        choice = choices[7 * step % len(choices)]
        plain.take(choice)
        copied = copied.copy()
        copied.take(choice)
        assert copied.form() == plain.form()


@pytest.mark.parametrize("path", sorted(WORLDS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_world_of_rejoin_has_a_question_and_keeps_its_rules(path: Path) -> None:
    world = read_world(path)
    assert world.question.endswith("?")
    assert world.explore is not None
    found = explore(world, depth=5 if world.explore.free is None else 2)
    assert found.counterexample is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("topics: {t: {partitions: 1, records_per_second: 1}}", "topic t grows without end"),
        ("explore: {failing_appends: true}", "failing_appends needs 'appends: true' beside it"),
        ("explore: {dept: 3}", "there is no such key; is it depth?"),
        ("events: [{at: 0, on_average_every: 1s, crash: {who: g-1}}]", "may happen at any time"),
    ],
)
def test_mistakes_in_a_world_are_named(change: str, problem: str) -> None:
    key = change.partition(":")[0]
    kept = [line for line in ONE.strip().splitlines() if not line.startswith(key)]
    with pytest.raises(BadScenario, match=problem):
        world_from("\n".join([*kept, change]))


def test_the_laboratory_refuses_a_path_of_another_world() -> None:
    text = "horizon: 10s\n" + ONE.replace("depth: 100", "path: [0, 99], depth: 100")
    with pytest.raises(BadScenario, match=r"explore\.path\.1: there is no choice 99"):
        run_of(text, None)
