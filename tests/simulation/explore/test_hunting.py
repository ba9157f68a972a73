"""Broken rules that a world finds within a second, at the depth of the table in ``docs/explore.md``."""

from __future__ import annotations

import pytest

from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.world import WORLDS, read_world
from tests.simulation.explore.hunting import CLASSIC as CLASSIC_WORLDS
from tests.simulation.explore.hunting import CONSUMER, FIRST, REQUESTS, STABLE, TWICE, all_mutations, hunt
from tests.simulation.search.mutations import Mutation
from tests.simulation.search.transaction_mutations import CRASH, LOST, SAME_ID
from tests.simulation.search.transaction_mutations import FIRST as TRANSACTIONAL_FIRST
from tests.simulation.search.transaction_mutations import WORLDS as TRANSACTIONAL_WORLDS

MUTATIONS: dict[str, Mutation] = {}
for each in all_mutations():
    MUTATIONS.setdefault(each.name, each)


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


def test_worlds_that_are_tried_first_exist() -> None:
    first = {**FIRST, **TRANSACTIONAL_FIRST}
    assert first.keys() <= MUTATIONS.keys()
    worlds = {name for names in TRANSACTIONAL_WORLDS.values() for name in names}
    assert {*first.values(), *CLASSIC_WORLDS, *CONSUMER, *REQUESTS.values(), *worlds} <= {
        path.stem for path in WORLDS.glob("*.yaml")
    }
