"""The same for groups of the consumer protocol: our client asks what Kafka's Java client asks, and lives here as there.

Which partitions a member has follows the random ids of members, so partitions are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from conformance.members.consumer_lives import CONSUMER_LIVES, DIFFERENCES
from conformance.members.lives import Life
from tests.conformance.members.replayed import replayed
from tests.paths import GOLDEN

EVERY_LIFE = pytest.mark.parametrize("life", CONSUMER_LIVES, ids=lambda life: str(life.name))


def recorded(life: Life, client: str) -> dict[str, Any]:
    return counted(json.loads((GOLDEN / "members" / f"{life.name}.json").read_text())[client])


def counted(found: dict[str, Any]) -> dict[str, Any]:
    """The lines of each member, each once, with topics and the number of their partitions."""
    return {
        name: {kind: list(dict.fromkeys(map(_counted, lines))) for kind, lines in kinds.items()}
        for name, kinds in found["members"].items()
    }


def _counted(line: str) -> str:
    head, arrow, rest = line.partition(" -> ")
    words = [re.sub(r"^(dozen|more[\w-]*)-\d+", r"\1", word) for word in head.split()]
    count = Counter(words)
    return (
        " ".join(word if count[word] == 1 else f"{count[word]}x{word}" for word in dict.fromkeys(words)) + arrow + rest
    )


@EVERY_LIFE
def test_both_clients_ask_the_same(life: Life) -> None:
    ours, java = recorded(life, "ours"), recorded(life, "java")
    assert (ours == java) is (life.name not in DIFFERENCES)


@EVERY_LIFE
def test_our_client_lives_as_well_on_our_coordinator(life: Life) -> None:
    found, kafka = counted(replayed(life)), recorded(life, "ours")
    if life.topics.startswith("^"):
        # Whether the topics of an expression are known to the second heartbeat or to the third is a matter of time.
        late, soon = ["Heartbeat 1 owns=0 -> 1", "Heartbeat 1 -> 2 with 12"], ["Heartbeat 1 owns=0 -> 2 with 12"]
        for kinds in (*found.values(), *kafka.values()):
            at = kinds["membership"].index(soon[0] if soon[0] in kinds["membership"] else late[0])
            kinds["membership"][at : at + 1 + (late[0] in kinds["membership"])] = soon
    assert found == kafka
