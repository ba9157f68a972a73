"""Streams groups under faults of threads, topics and coordinators: each broken rule is found."""

from __future__ import annotations

import pytest

from rejoin.simulation.search.checks import STREAMED
from rejoin.simulation.search.search import play_checked, search_seeds
from rejoin.simulation.search.streaming.scenarios import streaming_scenario
from rejoin.simulation.search.streaming.topologies import SHAPES
from tests.simulation.search.streams_mutations import MUTATIONS, Break
from tests.suite.long_runs import SEARCH_SEEDS

SEEDS = SEARCH_SEEDS

MUTATION_SEEDS = 20
"""So many seeds at the most are played until a broken rule is found."""


def test_nothing_is_found_in_streams_groups_as_they_are() -> None:
    report = search_seeds(0, SEEDS, schedule="streams", shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > SEEDS


def test_threads_lie_crash_and_change_while_topics_grow_and_coordinators_move() -> None:
    drawn = [streaming_scenario(seed) for seed in range(60)]
    moves = {move["kind"] for each in drawn for move in each["application"]["moves"]}
    assert {"crash", "leave", "rejoin", "lie", "own_less", "change", "offsets", "shutdown", "grow", "intrude"} <= moves
    assert {"failover", "restart"} <= {kind for each in drawn for event in each["events"] for kind in event}
    assert {each["application"]["shape"] for each in drawn} == set(SHAPES)


@pytest.mark.parametrize(("mutation", "check", "first"), MUTATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_rule_is_found(mutation: Break, check: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in range(first, first + MUTATION_SEEDS):
        violation = play_checked(streaming_scenario(seed)).violation
        if violation is not None and violation.check == check:
            assert "TypeError" not in str(violation), "the broken rule takes what the rule takes"
            return
    raise AssertionError(f"{MUTATION_SEEDS} seeds, and {check} has found nothing")


def test_enough_rules_are_broken() -> None:
    assert len(MUTATIONS) >= 12
    named = {check.__name__ for each in STREAMED for check in each}
    caught = {check for _, check, _ in MUTATIONS}
    assert caught <= named
    assert len(caught) > len(named) / 2
