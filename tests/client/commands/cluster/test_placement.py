"""Replicas that `rejoin reassign --generate` proposes: on different brokers, evenly, and one in each rack first."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rejoin.client.commands.replicas.placement import spread
from rejoin.client.commands.tools.connecting import ToolRefusal

FOUR = dict.fromkeys(range(1, 5))
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_spread_evenly(seed: int) -> None:
    found = spread(FOUR, 12, 3, random.Random(seed))
    assert all(len(set(replicas)) == 3 for replicas in found)
    assert set(Counter(replicas[0] for replicas in found).values()) == {3}
    assert set(Counter(broker for replicas in found for broker in replicas).values()) == {9}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("factor", range(1, 7))
def test_each_rack_has_a_replica_before_one_has_two(seed: int, factor: int) -> None:
    for replicas in spread(RACKS, 13, factor, random.Random(seed)):
        assert len(set(replicas)) == factor
        assert len({RACKS[broker] for broker in replicas}) == min(factor, 3)


def test_one_broker_is_enough_for_one_replica() -> None:
    assert spread({7: None}, 2, 1, random.Random(0)) == [(7,), (7,)]
    for brokers in ({}, {7: None}):
        with pytest.raises(ToolRefusal, match=r"brokers are currently fenced|only 1 broker"):
            spread(brokers, 1, 2, random.Random(0))
