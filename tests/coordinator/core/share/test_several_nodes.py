"""Share-partitions whose leader and whose coordinator are different nodes, and move while records are held."""

from __future__ import annotations

import pytest

from rejoin.protocol.errors import ErrorCode
from tests.benchmarks.calls import steps_of
from tests.coordinator.core.share.several_nodes import ACCEPT, COORDINATOR, LEADER, RELEASE, Cluster, Member, acquired


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(3)
    assert made.initializes() is ErrorCode.NONE
    made.writes(4)
    return made


def test_a_state_is_read_and_written_at_another_node(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    assert member.acknowledges(ACCEPT, 0, 2).error_code is ErrorCode.NONE
    assert member.acknowledges(RELEASE, 1, 3).error_code is ErrorCode.NONE
    assert Member(cluster, "b").acquires() == [(1, 1, 2), (3, 3, 2)]


def test_a_new_leader_knows_what_was_written_and_forgets_deliveries_that_were_not(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    member.acknowledges(ACCEPT, 0)
    member.acknowledges(RELEASE, 2)
    cluster.move(cluster.records, 3)
    member.turns_to(3)
    # Kafka: a delivery that was not given back is nowhere on record.
    assert member.acquires() == [(1, 1, 1), (2, 2, 2), (3, 3, 1)]


def test_a_session_at_a_node_that_leads_no_more_is_sent_to_the_leader(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.move(cluster.records, 3)
    refused = member.fetch()
    partition = refused.responses[0].partitions[0]
    assert partition.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, [each.node_id for each in refused.node_endpoints]) == (3, [3])


def test_acknowledgements_at_a_node_that_leads_no_more_are_refused(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.move(cluster.records, 3)
    refused = member.acknowledges(ACCEPT, 0)
    assert refused.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    member.turns_to(3)
    assert member.acquires() == [(0, 3, 1)]


def test_a_fetch_that_waits_is_answered_when_its_partition_moves(cluster: Cluster) -> None:
    Member(cluster, "a").acquires()
    waiting = Member(cluster, "b")
    number = waiting.starts_fetch(wait_ms=60_000)
    assert number not in waiting.driven.replies
    cluster.move(cluster.records, 3)
    assert waiting.result(number).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_coordinator_that_moves_has_the_state_there(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    assert member.acknowledges(ACCEPT, 0).error_code is ErrorCode.NONE
    cluster.move(cluster.states, 3)
    assert member.acknowledges(ACCEPT, 1).error_code is ErrorCode.NONE
    cluster.move(cluster.records, COORDINATOR)
    member.turns_to(COORDINATOR)
    assert member.acquires() == [(2, 3, 1)]


def test_a_coordinator_that_cannot_be_reached_is_asked_again(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.reach(COORDINATOR, reachable=False)
    number = member.starts_acknowledging(ACCEPT, 0)
    cluster.elapse(2_000)
    assert number not in member.driven.replies
    cluster.move(cluster.states, 3)
    cluster.elapse(1_000)
    assert member.result(number).error_code is ErrorCode.NONE


def test_a_coordinator_that_stays_away_fails_the_write_and_the_member_still_holds_the_record(
    cluster: Cluster,
) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.reach(COORDINATOR, reachable=False)
    number = member.starts_acknowledging(ACCEPT, 0)
    cluster.elapse(31_000)
    assert member.result(number).error_code is not ErrorCode.NONE
    cluster.reach(COORDINATOR, reachable=True)
    cluster.elapse(60_000)
    assert Member(cluster, "b").acquires() == [(0, 3, 2)]


def test_a_first_fetch_waits_for_a_coordinator_that_cannot_be_reached(cluster: Cluster) -> None:
    cluster.reach(COORDINATOR, reachable=False)
    member = Member(cluster, "a")
    number = member.starts_fetch(wait_ms=10_000)
    cluster.elapse(1_500)
    cluster.reach(COORDINATOR, reachable=True)
    cluster.elapse(2_000)
    assert acquired(member.driven.replies[number]) == [(0, 3, 1)]


def test_a_write_whose_append_fails_is_made_again(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.logs.error = ErrorCode.NOT_ENOUGH_REPLICAS
    number = member.starts_acknowledging(ACCEPT, 0)
    assert number not in member.driven.replies
    cluster.logs.error = None
    cluster.elapse(1_000)
    assert member.result(number).error_code is ErrorCode.NONE
    cluster.elapse(30_000)
    assert Member(cluster, "b").acquires() == [(1, 3, 2)]


def test_a_write_of_an_earlier_leadership_does_not_touch_the_locks_of_the_present_one(cluster: Cluster) -> None:
    member = Member(cluster, "a")
    assert member.acquires() == [(0, 3, 1)]
    cluster.reach(COORDINATOR, reachable=False)
    number = member.starts_acknowledging(ACCEPT, 0, 1, 2, 3)
    cluster.elapse(8_000)
    cluster.move(cluster.records, 3)
    cluster.move(cluster.records, LEADER)
    cluster.reach(COORDINATOR, reachable=True)
    assert Member(cluster, "b").acquires() == [(0, 3, 1)]
    late = Member(cluster, "c")
    waiting = late.starts_fetch(wait_ms=60_000)
    cluster.elapse(29_000)
    assert member.result(number).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert waiting not in late.driven.replies
    cluster.elapse(1_000)
    assert acquired(late.driven.replies[waiting]) == [(0, 3, 2)]


def test_locks_of_an_earlier_leadership_do_not_touch_those_of_the_present_one(cluster: Cluster) -> None:
    assert Member(cluster, "a").acquires() == [(0, 3, 1)]
    cluster.elapse(20_000)
    cluster.move(cluster.records, 3)
    cluster.move(cluster.records, LEADER)
    assert Member(cluster, "b").acquires() == [(0, 3, 1)]
    cluster.elapse(15_000)
    late = Member(cluster, "c")
    assert late.acquires() == []
    cluster.elapse(15_000)
    assert late.acquires() == [(0, 3, 2)]


def steps_of_a_lost_connection(waiting: int) -> int:
    """The steps that the loss of one connection takes, where so many fetches wait for the share-partition."""
    cluster = Cluster(2)
    cluster.initializes()
    cluster.writes(1)
    assert Member(cluster, "holder").acquires() == [(0, 0, 1)]
    members = [Member(cluster, f"m{number}") for number in range(waiting)]
    for member in members:
        member.starts_fetch(wait_ms=60_000)
    return steps_of(members[0].disconnects)


def test_fetches_that_wait_for_a_partition_that_is_read_to_its_end_are_not_looked_at_one_by_one() -> None:
    few, many = steps_of_a_lost_connection(10), steps_of_a_lost_connection(110)
    assert many - few <= 100 * 5
