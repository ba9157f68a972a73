"""Share groups under faults of members, leaders and share coordinators: each broken rule is found."""

from __future__ import annotations

import pytest

from rejoin.simulation.search.checks import SHARED
from rejoin.simulation.search.search import play_checked, search_seeds
from rejoin.simulation.search.sharing import sharing_scenario
from tests.simulation.search.share_mutations import MUTATIONS, Break
from tests.suite.long_runs import SEARCH_SEEDS

SEEDS = SEARCH_SEEDS

MUTATION_SEEDS = 40
"""So many seeds at the most are played until a broken rule is found."""


def test_nothing_is_found_in_share_groups_as_they_are() -> None:
    report = search_seeds(0, SEEDS, schedule="share", shrink=False)
    assert report.failure is None, report.failure.report()
    assert report.faults > SEEDS


def test_leaders_share_coordinators_and_members_fail() -> None:
    drawn = {
        kind if kind != "move" else event["move"]["topic"]
        for seed in range(40)
        for event in sharing_scenario(seed)["events"]
        for kind in event
    }
    assert {"crash", "restart", "failover", "t", "__share_group_state"} <= drawn


@pytest.mark.parametrize(("mutation", "check", "first"), MUTATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_rule_is_found(mutation: Break, check: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in range(first, first + MUTATION_SEEDS):
        violation = play_checked(sharing_scenario(seed)).violation
        if violation is not None and violation.check == check:
            assert "TypeError" not in str(violation), "the broken rule takes what the rule takes"
            return
    raise AssertionError(f"{MUTATION_SEEDS} seeds, and {check} has found nothing")


def test_enough_rules_are_broken() -> None:
    assert len(MUTATIONS) >= 12
    named = {check.__name__ for each in SHARED for check in each}
    caught = {check for _, check, _ in MUTATIONS}
    assert caught <= named
    assert len(caught) > len(named) / 2
