"""With sleep sets the same states are met at the same depths, by fewer steps."""

from __future__ import annotations

import pytest

from rejoin.simulation.explore.explorer import Exploration, explore
from rejoin.simulation.explore.reduction import CannotBeReduced
from rejoin.simulation.explore.world import world_from
from tests.simulation.explore.small_worlds import small_world

THREE = """
topics: {t: {partitions: 1}}
groups: {g: {topics: [t], consumers: 3}}
explore: {faults: 0}
"""


def both(text: str, depth: int) -> tuple[Exploration, Exploration]:
    """A world explored without and with sleep sets."""
    world = world_from(text)
    return tuple(explore(world, depth=depth, liveness=False, reduction=each) for each in (False, True))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (THREE, 6),
        (THREE.replace("consumers: 3", "consumers: 2, protocol: consumer"), 10),
        (THREE.replace("consumers: 3", "consumers: 2").replace("faults: 0", "faults: 1, lost_answers: true"), 6),
    ],
)
def test_sleep_sets_miss_no_state(text: str, depth: int) -> None:
    every_order, one_order = both(text, depth)
    assert one_order.by_depth == every_order.by_depth
    assert one_order.edges < every_order.edges


def test_worlds_whose_clients_share_more_than_nodes_are_refused() -> None:
    with pytest.raises(CannotBeReduced, match="classic and consumer groups without records"):
        explore(small_world("transactions"), reduction=True)
