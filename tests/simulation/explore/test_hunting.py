"""Broken rules that a world finds within a second, at the depth of the table in ``docs/explore.md``."""

from __future__ import annotations

import pytest

from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.world import WORLDS, read_world
from tests.simulation.explore.hunting import CLASSIC as CLASSIC_WORLDS
from tests.simulation.explore.hunting import (
    CONSUMER,
    FIRST,
    FIRST_OF,
    REQUESTS,
    SHARE_HANGS,
    STABLE,
    STREAMS_CRASH,
    TWICE,
    WORLDS_OF,
    all_mutations,
    hunt,
)
from tests.simulation.search.mutations import Mutation
from tests.simulation.search.transaction_mutations import CRASH, LOST, SAME_ID
from tests.simulation.search.transaction_mutations import FIRST as TRANSACTIONAL_FIRST

MUTATIONS: dict[str, Mutation] = {}
OF_SCHEDULE: dict[tuple[str, str], Mutation] = {}
for each in all_mutations():
    MUTATIONS.setdefault(each.name, each)
    OF_SCHEDULE[each.schedule, each.name] = each


@pytest.mark.parametrize(
    ("name", "world", "depth"),
    [
        ("sessions_end_a_moment_early", STABLE, 5),
        ("the_last_to_leave_brings_no_rebalance", STABLE, 2),
        ("the_old_process_of_an_instance_is_not_fenced", TWICE, 8),
        ("the_last_stable_offset_passes_open_transactions", CRASH, 4),
        ("a_batch_that_is_sent_again_is_numbered_anew", LOST, 9),
        ("a_successor_gets_the_epoch_of_its_predecessor", SAME_ID, 6),
    ],
)
def test_a_broken_rule_is_found_at_its_depth(name: str, world: str, depth: int) -> None:
    found = hunt(MUTATIONS[name], (world,))
    assert found is not None
    assert found.depth == depth
    scenario = read_world(WORLDS / f"{world}.yaml")
    assert explore(scenario, depth=depth).counterexample is None, "the right rule breaks no check there"


@pytest.mark.parametrize(
    ("schedule", "name", "world", "depth"),
    [
        ("share", "deliveries_are_not_counted", SHARE_HANGS, 3),
        ("streams", "a_streams_removal_lowers_the_epoch", STREAMS_CRASH, 5),
    ],
)
def test_a_broken_rule_of_other_groups_is_found_at_its_depth(schedule: str, name: str, world: str, depth: int) -> None:
    found = hunt(OF_SCHEDULE[schedule, name], (world,))
    assert found is not None
    assert found.depth == depth
    assert explore(read_world(WORLDS / f"{world}.yaml"), depth=depth).counterexample is None


def test_worlds_that_are_tried_first_exist() -> None:
    first = {**FIRST, **TRANSACTIONAL_FIRST}
    assert first.keys() <= MUTATIONS.keys()
    assert FIRST_OF.keys() <= OF_SCHEDULE.keys()
    tried = {name for names in WORLDS_OF.values() for name in names}
    named = {*first.values(), *FIRST_OF.values(), *CLASSIC_WORLDS, *CONSUMER, *REQUESTS.values(), *tried}
    assert named <= {path.stem for path in WORLDS.glob("*.yaml")}
