"""Consumer groups, and groups that move to the other protocol, under faults: each broken rule is found."""

from __future__ import annotations

import pytest

from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.protocols import protocols_of
from rejoin.simulation.search.checks import MIGRATING
from rejoin.simulation.search.migrating import migrating_scenario
from rejoin.simulation.search.search import play_checked, search_seeds
from tests.simulation.search.migration_mutations import MUTATIONS, Break
from tests.suite.long_runs import SEARCH_SEEDS

SEEDS = SEARCH_SEEDS

MUTATION_SEEDS = 60
"""So many seeds at the most are played until a broken rule is found."""

HAS_FAILED_ONCE = (
    110,  # classic members alone in a group that may not be downgraded wait for a target
    274,  # a change fails of which others were made: two members had the same target
    503,  # the same: who holds what was lost
    588,  # a static member that does not poll leaves, and reads on
    936,  # the same as 274: a partition had no owner for good
    1_096,  # a rebalance timer is cancelled by a change that fails
    3_151,  # Kafka's: a heartbeat with an older assignment gives up what the member is taking over
)


def test_nothing_is_found_in_consumer_groups_as_they_are() -> None:
    report = search_seeds(0, SEEDS, schedule="consumer", shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > SEEDS


@pytest.mark.parametrize("seed", HAS_FAILED_ONCE)
def test_what_failed_once_is_mended(seed: int) -> None:
    violation = play_checked(migrating_scenario(seed)).violation
    assert violation is None, violation


def test_groups_of_both_kinds_and_moves_both_ways_are_drawn() -> None:
    drawn = [tuple(protocols_of(Scenario.model_validate(migrating_scenario(seed)), "app")) for seed in range(60)]
    assert {("classic",), ("consumer",), ("classic", "consumer"), ("consumer", "classic")} <= set(drawn)


def test_all_policies_are_drawn() -> None:
    name = "group.consumer.migration.policy"
    drawn = {migrating_scenario(seed)["coordinator"]["settings"][name] for seed in range(40)}
    assert drawn == {"disabled", "downgrade", "upgrade", "bidirectional"}


@pytest.mark.parametrize(("mutation", "check", "first"), MUTATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_rule_is_found(mutation: Break, check: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in range(first, first + MUTATION_SEEDS):
        violation = play_checked(migrating_scenario(seed)).violation
        if violation is not None and violation.check == check:
            assert "TypeError" not in str(violation), "the broken rule takes what the rule takes"
            return
    raise AssertionError(f"{MUTATION_SEEDS} seeds, and {check} has found nothing")


def test_enough_rules_are_broken() -> None:
    assert len(MUTATIONS) >= 15
    named = {check.__name__ for each in MIGRATING for check in each}
    assert {check for _, check, _ in MUTATIONS} <= named
