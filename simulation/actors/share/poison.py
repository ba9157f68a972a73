"""Poison records: those that no handler can handle, a function of the seed and of their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

IsPoison: TypeAlias = Callable[[str, int, int], bool]
"""Whether the record of a topic's partition at an offset is poison."""


def poison_of(seed: int, chances: Mapping[str, float]) -> IsPoison:
    """The poison records of a run. ``chances`` has the share of them in each topic."""

    def is_poison(topic: str, partition: int, offset: int) -> bool:
        chance = chances.get(topic, 0.0)
        return chance > 0.0 and Random(f"{seed}/poison/{topic}/{partition}/{offset}").random() < chance

    return is_poison
