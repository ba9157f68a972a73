"""What is concluded from snapshots of a group: rebalances with their causes, lag in time, and what stands still."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.progress import lag_of
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup
from rejoin.pipeline.why.answer import answer
from tests.pipeline.kafka_cluster.snapshots import START, member, snapshot


def observed(*snapshots: ClusterGroup) -> ObservedGroup:
    group = ObservedGroup("orders-app", "run")
    for each in snapshots:
        group.follow(each)
    return group


def rules(group: ObservedGroup) -> dict[str, dict[str, Any]]:
    return {row["finding"]: row for row in group.findings()}


# -- rebalances


def test_a_rebalance_between_two_snapshots_has_the_member_that_came() -> None:
    group = observed(snapshot(0, member("a", 0, 1)), snapshot(5, member("a", 0), member("b", 1)))
    (row,) = group.rebalances
    assert (row["cause"], row["cause_client_id"], row["outcome"], row["moved"]) == ("join-new", "b", "completed", 1)
    assert (row["prepared_at_ms"], row["ended_at_ms"]) == (START, START + 5_000)
    assert row["confidence"] == "inferred"


def test_a_rebalance_that_is_seen_begins_where_it_is_seen_first() -> None:
    group = observed(
        snapshot(0, member("a", 0), member("b", 1)),
        snapshot(5, member("a"), member("b"), state="PreparingRebalance"),
        snapshot(10, member("a"), state="CompletingRebalance"),
        snapshot(15, member("a", 0, 1)),
    )
    (row,) = group.rebalances
    assert (row["prepared_at_ms"], row["ended_at_ms"]) == (START + 5_000, START + 15_000)
    assert (row["cause"], row["cause_client_id"], row["left"], row["moved"]) == ("leave", "b", ["b-1"], 1)


def test_a_rebalance_that_goes_on_is_in_the_story() -> None:
    group = observed(snapshot(0, member("a", 0)), snapshot(5, member("a"), state="PreparingRebalance"))
    assert [row["outcome"] for row in group.story().rebalances] == ["open"]
    assert "it goes on" in "\n".join(answer(group.story(), 120))


def test_a_static_member_that_is_back_before_the_next_snapshot() -> None:
    group = observed(
        snapshot(0, member("a", 0, instance="i")), snapshot(5, member("a", 0, instance="i", incarnation=2))
    )
    assert [row["cause"] for row in group.rebalances] == ["static-metadata"]
    assert [row["end"] for row in group.ended] == ["replaced"]


def test_a_group_that_stays_as_it_is_has_no_rebalance() -> None:
    assert not observed(*[snapshot(second, member("a", 0), member("b", 1)) for second in range(0, 50, 5)]).rebalances


def test_the_last_member_leaves() -> None:
    group = observed(snapshot(0, member("a", 0)), snapshot(5, state="Empty"))
    assert [(row["outcome"], row["cause"]) for row in group.rebalances] == [("emptied", "leave")]


def test_a_member_that_comes_and_goes_is_named() -> None:
    snapshots = [snapshot(0, member("a", 0), member("b", 1))]
    for turn in range(1, 7):
        snapshots.append(snapshot(turn * 60, member("a", 0, 1)))
        snapshots.append(snapshot(turn * 60 + 20, member("a", 0), member("b", 1, incarnation=turn + 1)))
    found = rules(observed(*snapshots))
    assert found["flapping-member"]["members"] == ["b"]
    assert found["flapping-member"]["confidence"] == "inferred"


def test_more_members_than_partitions() -> None:
    snapshots = [snapshot(second, member("a", 0), member("b"), member("c")) for second in range(0, 300, 10)]
    assert "idle-members" in rules(observed(*snapshots))


def test_a_snapshot_is_read_back_as_it_was_written() -> None:
    one = snapshot(1, member("a", 0, 3, instance="i"), member("b"), offsets={0: (5, 9), 3: (None, 4), 4: (7, None)})
    assert ClusterGroup.of_row(json.loads(json.dumps(one.as_row()))) == one


# -- lag in time


def test_lag_in_time_is_the_age_of_the_next_record() -> None:
    samples = [(0, 0), (10_000, 100), (20_000, 200), (30_000, 300)]
    assert lag_of(samples, 150, 30_000) == 15_000
    assert lag_of(samples, 300, 30_000) == 0
    assert lag_of(samples, 0, 30_000) == 30_000


def test_the_age_of_records_older_than_the_first_snapshot_follows_from_the_rate() -> None:
    assert lag_of([(10_000, 1_000), (20_000, 1_100)], 900, 20_000) == 20_000


def test_without_a_rate_older_records_have_no_age() -> None:
    assert lag_of([(0, 10)], 5, 1_000) is None
    assert lag_of([], 5, 1_000) is None


def test_the_status_has_the_worst_lag() -> None:
    group = observed(*[snapshot(s, member("a", 0, 1), offsets={0: (s, s), 1: (0, s * 10)}) for s in range(0, 60, 10)])
    assert group.status().lag == 500
    assert group.status().lag_ms == 50_000


# -- owned, but not moving


def standing(
    committed: int | None = 5, *, seconds: int = 120, owner: str = "b", grows: int = 10, other: bool = False
) -> ObservedGroup:
    """Partition 1 of b stands, partition 0 of a moves; with ``other``, b has another one that moves."""
    mine = (1, 2) if other else (1,)
    snapshots = []
    for second in range(0, seconds + 1, 5):
        offsets: dict[int, tuple[int | None, int | None]] = {
            0: (second * 10, second * 10 + 3),
            1: (committed, 50 + second * grows),
            2: (second, second),
        }
        snapshots.append(snapshot(second, member("a", 0), member(owner, *mine), offsets=offsets))
    return observed(*snapshots)


def test_owned_but_not_moving() -> None:
    found = rules(standing())["owned-not-moving"]
    assert found["severity"] == "high"
    assert found["title"] == "b owns 1 partition and reads none of it: lag 1,245"
    assert "orders-1" in found["text"]
    assert found["members"] == ["b-1"]
    assert found["setting"] == "max.poll.interval.ms"


def test_one_partition_of_a_consumer_that_goes_on() -> None:
    found = rules(standing(other=True))["owned-not-moving"]
    assert found["severity"] == "medium"
    assert "record at offset 5 of orders-1" in found["advice"]


@pytest.mark.parametrize(
    "values",
    [
        {"seconds": 30},
        {"committed": None},
        {"committed": 50, "grows": 0},
        {"committed": 49, "grows": 0},
    ],
    ids=["for a short time", "never committed", "nothing to read", "the marker of a transaction"],
)
def test_what_comes_close_and_is_no_finding(values: dict[str, Any]) -> None:
    assert "owned-not-moving" not in rules(standing(**values))


def test_a_partition_that_changes_hands_begins_anew() -> None:
    snapshots = [snapshot(s, member("a" if s < 60 else "b", 0), offsets={0: (5, 50 + s)}) for s in range(0, 110, 5)]
    assert "owned-not-moving" not in rules(observed(*snapshots))


def test_a_group_that_commits_rarely_is_given_its_time() -> None:
    snapshots = [snapshot(s, member("a", 0), offsets={0: (s // 100 * 100, s + 10)}) for s in range(0, 380, 5)]
    assert "owned-not-moving" not in rules(observed(*snapshots))


def test_a_topic_without_records_until_now() -> None:
    snapshots = [snapshot(s, member("a", 0), offsets={0: (5, 5 if s < 150 else 6 + s)}) for s in range(0, 180, 5)]
    assert "owned-not-moving" not in rules(observed(*snapshots))
