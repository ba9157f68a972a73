"""The search: clean on the coordinator as it is, and able to find each of its rules broken."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rejoin.coordinator.leadership.leases import Leases
from rejoin.seed_ranges import BadRange, parse_seeds
from rejoin.simulation.actors.leased_cluster import LeasedCluster
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.search.checks import AT_THE_END, EACH_STEP, NOW_AND_THEN, ON_ASSIGNMENT
from rejoin.simulation.search.schedules import SCHEDULES, random_scenario
from rejoin.simulation.search.search import FailingSeed, explain, play_checked, search_seeds
from rejoin.simulation.simulation import Simulation
from rejoin.transcript.player import play
from rejoin.transcript.session import NodeFailed
from tests.simulation.search.mutations import MUTATIONS, SEARCHED, Mutation
from tests.simulation.unfinished import run_to_horizon
from tests.suite.long_runs import SEARCH_SEEDS

SEEDS = SEARCH_SEEDS

MUTATION_SEEDS = 60
"""So many seeds at the most are played until a broken rule is found."""


@pytest.mark.parametrize("start", range(0, SEEDS, 20))
def test_nothing_is_found_in_the_coordinator_as_it_is(start: int) -> None:
    report = search_seeds(start, min(SEEDS, start + 20), shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > 5 * min(SEEDS, 20) // 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_drawn_could_be_written_by_hand(schedule: str) -> None:
    for seed in range(30):
        drawn = dict(SCHEDULES[schedule](seed))
        # Threads that send anything at all are for searches alone.
        drawn.pop("application", None)
        scenario_from(yaml.safe_dump(drawn), f"{schedule} {seed}")


def test_nothing_is_found_while_nodes_lose_what_they_lead() -> None:
    report = search_seeds(0, max(1, SEEDS // 3), schedule="failovers", shrink=False)
    assert report.failure is None, report.failure.report()


def test_nodes_that_lost_their_leases_write_nothing() -> None:
    """They could not reach the store, another leads, and what they still had to write is refused."""
    fenced, taken = 0, 0
    for seed in range(20):
        simulation = Simulation(Scenario.model_validate(SCHEDULES["failovers"](seed)), skip=False)
        assert isinstance(simulation.cluster, LeasedCluster)
        run_to_horizon(simulation)
        fenced += simulation.disk.fenced
        taken += sum(lease.epoch for lease in simulation.cluster.store.leases.values())
    assert fenced >= 2
    assert taken >= 100


def test_what_a_node_knows_of_leaders_ages_while_the_store_is_away() -> None:
    scenario = Scenario.model_validate(
        {
            "horizon": "95s",
            "topics": {"t": {"partitions": 3}},
            "groups": {"app": {"topics": ["t"], "consumers": 2, "commit": "after"}},
            "coordinator": {"nodes": 3, "lease": "9s", "settings": {"offsets.topic.num.partitions": 3}},
            "events": [{"at": "60s", "outage": {"for": "30s"}}],
        }
    )
    known: dict[int, list[int]] = {}

    def look(_: object) -> None:
        known[simulation.world.now] = [
            len(node.core.leaders) for node in simulation.cluster.nodes if node.core is not None
        ]

    simulation = Simulation(scenario)
    for at in (59_000, 80_000, 94_000):
        simulation.world.control(at, look)
    run_to_horizon(simulation)
    assert known == {59_000: [3, 3, 3], 80_000: [0, 0, 0], 94_000: [3, 3, 3]}


def test_a_lease_that_is_thought_to_last_longer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that cannot renew it leads on beside the next one."""
    right = Leases.__init__

    def wrong(self: Leases, *arguments: Any) -> None:
        right(self, *arguments)
        self._own_ms *= 2

    monkeypatch.setattr(Leases, "__init__", wrong)
    report = search_seeds(0, 20, schedule="failovers", shrink=False)
    assert report.failure is not None
    assert report.failure.violation.check == "an_offsets_partition_has_two_leaders"


def first_seed(mutation: Mutation) -> int:
    """The first seed with which the broken rule, which is in force, is found by the check that is meant to find it."""
    for seed in range(mutation.first, mutation.first + MUTATION_SEEDS):
        violation = play_checked(SEARCHED[mutation.schedule](seed)).violation
        if violation is not None and violation.check == mutation.check:
            assert "TypeError" not in str(violation), "the broken rule takes what the rule takes"
            return seed
    raise AssertionError(f"{MUTATION_SEEDS} seeds of {mutation.schedule}, and {mutation.check} has found nothing")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_broken_rule_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch)
    data = SEARCHED[mutation.schedule](first_seed(mutation))
    found = play_checked(data, transcript=True)
    broken = replayed(found.transcript)
    monkeypatch.undo()
    assert play_checked(data).violation is None, "without the mutation nothing is found"
    assert replayed(found.transcript) != broken, "its transcript distinguishes the broken rule from the right one"


def replayed(text: str) -> str:
    """What a transcript gives, or how it fails."""
    try:
        return play(text).text
    except NodeFailed as problem:
        return str(problem)


def test_most_checks_find_a_broken_rule() -> None:
    assert len(MUTATIONS) >= 15
    named = {check.__name__ for check in (*EACH_STEP, *ON_ASSIGNMENT, *NOW_AND_THEN, *AT_THE_END)}
    caught = {mutation.check for mutation in MUTATIONS}
    assert caught <= named
    assert len(caught) > len(named) / 2


def found(monkeypatch: pytest.MonkeyPatch, name: str) -> FailingSeed:
    mutation = next(each for each in MUTATIONS if each.name == name)
    mutation.apply(monkeypatch)
    seed = first_seed(mutation)
    data = SEARCHED[mutation.schedule](seed)
    violation = play_checked(data).violation
    assert violation is not None
    return explain(mutation.schedule, seed, data, violation, shrink=True)


def test_a_failure_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = found(monkeypatch, "duplicate_instances_are_not_fenced")
    whole = random_scenario(failure.seed)
    assert len(failure.data["events"]) <= 3 < len(whole["events"])
    assert play_checked(failure.data).violation is not None
    Scenario.model_validate(failure.data)
    assert f"rejoin search --seeds {failure.seed}" in failure.report()
    assert failure.scenario_text() in failure.report()


def test_a_failure_becomes_a_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = found(monkeypatch, "every_member_gets_the_leaders_share")
    text = failure.transcript
    assert text.startswith("# a partition has two owners in a generation")
    assert "generation 1" in text
    assert "CompletingRebalance -> Stable" in text
    assert not play(text).differing, "the failing coordinator does the same again"
    monkeypatch.undo()
    played = play(text)
    assert len(played.differing) == 1, "and another coordinator something else"
    assert played.text.count("----") == text.count("----")


@pytest.mark.parametrize("text", ["", "5:3", "a:b", "-1:3", "3:3"])
def test_a_range_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadRange, match=r"expected"):
        parse_seeds(text)


def test_a_range_is_a_number_or_two() -> None:
    assert parse_seeds("7") == (7, 8)
    assert parse_seeds("0:100000") == (0, 100_000)
