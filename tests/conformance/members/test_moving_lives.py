"""Groups that real clients moved on a real Kafka, there and back: a node is asked each request, field by field."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, Final

import pytest

from conformance.members.moving_lives import MOVING_LIVES
from tests.conformance.groups.test_recorded_groups import differences_in
from tests.conformance.transactions.recorded_scripts import scripts_of
from tests.paths import GOLDEN

LIVES: Final = {
    name: lines
    for path in sorted((GOLDEN / "consumer-groups" / "lives").glob("*.jsonl.gz"))
    for name, lines in scripts_of(path)
}
MOVES_BACK: Final = [f"move-{life}" for life in ("there-and-back", "static", "cooperative", "commit-sync")]


def steps_of(name: str, api: str) -> list[dict[str, Any]]:
    """The recorded requests of one kind that were answered, in order."""
    return [each for each in map(json.loads, LIVES[name][1:]) if each["api"] == api and each["answer"]]


@pytest.mark.parametrize("over_wire", [False, True], ids=["core", "wire"])
@pytest.mark.parametrize("name", sorted(LIVES))
def test_every_answer_is_as_recorded(name: str, over_wire: bool) -> None:
    assert differences_in(LIVES[name], over_wire=over_wire) == []


def test_every_life_was_recorded_with_each_of_its_clients() -> None:
    assert set(LIVES) == {f"{life.name}/{client}" for life in MOVING_LIVES for client in life.clients}


@pytest.mark.parametrize("client", ["java", "ours", "confluent"])
@pytest.mark.parametrize("life", MOVES_BACK)
def test_groups_moved_there_and_back_and_kept_their_offsets(life: str, client: str) -> None:
    name = f"{life}/{client}"
    if name not in LIVES:
        assert client == "confluent", "its cooperative groups cannot move"
        return
    seen = [
        [step["answer"]["groups"][0]["errorCode"] for step in steps_of(name, api)]
        for api in ("ConsumerGroupDescribe", "DescribeGroups")
    ]
    is_consumer_group = [(consumer, classic) == (0, 69) for consumer, classic in zip(*seen, strict=True)]
    assert is_consumer_group == [False, True, True, True, False, False]
    fetched = [step for step in steps_of(name, "OffsetFetch") if step["client"].endswith(".admin")]
    found = [step["answer"]["groups"][0]["topics"][0]["partitions"] for step in fetched]
    committed = [{each["partitionIndex"]: each["committedOffset"] for each in partitions} for partitions in found]
    for earlier, later in pairwise(committed):
        assert all(earlier[partition] <= later[partition] for partition in earlier)
    assert set(committed[-1].values()) == {13}, "all that was written, in every partition"
