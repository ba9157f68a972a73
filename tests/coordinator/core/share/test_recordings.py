"""396 random sequences of Kafka's SharePartition, with its share coordinator, replay here with every field the same."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.coordinator.core.share.recordings import Player, sequences

CATEGORIES = (
    *("plain", "offsets", "record-limit", "limits", "transactions", "failures"),
    *("parked", "leaders", "dead-letters", "retention", "mixed"),
)


@cache
def by_category() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for sequence in sequences():
        found.setdefault(sequence["category"], []).append(sequence)
    return found


def test_recordings_are_whole() -> None:
    assert Counter({name: len(found) for name, found in by_category().items()}) == dict.fromkeys(CATEGORIES, 36)


@pytest.mark.xdist_group("share-partition recordings")
@pytest.mark.parametrize("category", CATEGORIES)
def test_a_share_partition_does_what_kafkas_does(category: str) -> None:
    for sequence in by_category()[category]:
        player = Player(sequence)
        for number, step in enumerate(sequence["steps"]):
            assert player.play(step) == step, f"{sequence['id']}, step {number}"
