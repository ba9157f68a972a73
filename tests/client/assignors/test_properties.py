"""What must hold for any group, whatever Kafka's answer in detail."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.client.assignors import (
    ClusterView,
    MemberSubscription,
    RebalanceProtocol,
    assignor_named,
    check_assignment,
)
from rejoin.client.assignors.whatif import WhatIf
from tests.client.assignors.groups import (
    NAMES,
    STICKY,
    all_partitions,
    claiming,
    differing_groups,
    equal_groups,
    owners,
    topic_counts,
)

Drawn = tuple[ClusterView, dict[str, MemberSubscription]]


def without_idle(members: dict[str, MemberSubscription]) -> dict[str, MemberSubscription]:
    """Members without topics left out: Kafka's sticky assignors give partitions to one that comes first."""
    return {m: member for m, member in members.items() if member.subscription.topics} or members


@pytest.mark.parametrize("name", NAMES)
@given(group=st.one_of(equal_groups(), differing_groups()))
def test_everything_is_given_once_and_to_subscribers_only(name: str, group: Drawn) -> None:
    cluster, members = group
    if name in STICKY:
        members = without_idle(members)
    answer = assignor_named(name).assign(cluster, members)
    assert list(answer) == list(members)
    check_assignment(cluster, members, answer)


@pytest.mark.parametrize("name", ["roundrobin", "sticky", "cooperative-sticky"])
@given(group=equal_groups())
def test_members_that_want_the_same_get_the_same_within_one(name: str, group: Drawn) -> None:
    sizes = [len(given) for given in assignor_named(name).assign(*group).values()]
    assert max(sizes) - min(sizes) <= 1


@given(group=equal_groups())
def test_range_is_even_within_one_for_each_topic(group: Drawn) -> None:
    answer = assignor_named("range").assign(*group)
    for topic in group[0].partition_counts:
        sizes = [sum(partition[0] == topic for partition in given) for given in answer.values()]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", STICKY)
@given(group=differing_groups())
def test_sticky_leaves_no_partition_that_a_member_with_two_fewer_could_have(name: str, group: Drawn) -> None:
    cluster, members = group
    members = without_idle(members)
    answer = assignor_named(name).assign(cluster, members)
    for partition, owner in owners(answer).items():
        for member_id, member in members.items():
            if partition[0] in member.subscription.topics:
                assert len(answer[member_id]) >= len(answer[owner]) - 1


@pytest.mark.parametrize("name", STICKY)
@given(data=st.data(), group=equal_groups(), joining=st.integers(0, 4))
def test_sticky_moves_no_more_than_it_must(name: str, data: st.DataObject, group: Drawn, joining: int) -> None:
    cluster, members = group
    topics = sorted(cluster.partition_counts)
    before = assignor_named(name).assign(cluster, members)
    staying = data.draw(st.lists(st.sampled_from(sorted(members)), unique=True))
    after_members = {member_id: claiming(name, topics, before[member_id], 1) for member_id in staying}
    after_members |= {f"new-{number}": claiming(name, topics, (), -1) for number in range(joining)}
    if not after_members:
        return
    after = assignor_named(name).assign(cluster, after_members)
    kept = sum(partition in before[member_id] for member_id in staying for partition in after[member_id])

    # No member may keep more than the larger share, and only so many may keep that.
    small, large_shares = divmod(len(all_partitions(cluster.partition_counts)), len(after_members))
    owned = [len(before[member_id]) for member_id in staying]
    most_kept = sum(min(count, small) for count in owned) + min(large_shares, sum(count > small for count in owned))
    assert kept == most_kept


@pytest.mark.parametrize("name", STICKY)
@given(group=differing_groups())
def test_nothing_moves_when_nothing_changes(name: str, group: Drawn) -> None:
    cluster, members = group
    members = without_idle(members)
    before = assignor_named(name).assign(cluster, members)
    again = {m: claiming(name, members[m].subscription.topics, before[m], 1) for m in members}
    after = assignor_named(name).assign(cluster, again)
    assert owners(after) == owners(before)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@given(data=st.data(), group=differing_groups())
def test_order_of_joining_changes_no_share(name: str, data: st.DataObject, group: Drawn) -> None:
    cluster, members = group
    order = data.draw(st.permutations(list(members)))
    shuffled = {member_id: members[member_id] for member_id in order}
    assert owners(assignor_named(name).assign(cluster, shuffled)) == owners(
        assignor_named(name).assign(cluster, members)
    )


@given(counts=topic_counts, steps=st.lists(st.tuples(st.sampled_from("lljjg"), st.integers(0, 30)), max_size=6))
@settings(max_examples=60)
def test_cooperative_gives_nothing_before_its_owner_let_it_go(
    counts: dict[str, int], steps: list[tuple[str, int]]
) -> None:
    group = WhatIf("cooperative-sticky", dict(counts))
    outcomes = [group.start({"a": None, "b": None})]
    members, born = ["a", "b"], 0
    for kind, pick in steps:
        if kind == "l" and members:
            step = f"leave:{members.pop(pick % len(members))}"
        elif kind == "j":
            step = f"join:new-{born}"
            members.append(f"new-{born}")
            born += 1
        else:
            topic = sorted(group.topics)[pick % len(group.topics)]
            step = f"grow:{topic}:{group.topics[topic] + 1 + pick % 3}"
        outcomes.append(group.run(step))

    holding: dict[tuple[str, int], str] = {}
    for outcome in outcomes:
        holding = {partition: owner for partition, owner in holding.items() if owner in outcome.owned}
        for done in outcome.rounds:
            now = owners(done.owned)
            assert len(now) == sum(map(len, done.owned.values()))
            for partition, owner in now.items():
                assert holding.get(partition, owner) == owner, "given while another member still holds it"
            assert set(done.withheld).isdisjoint(now)
            holding = now
        if outcome.owned:
            assert not outcome.rounds[-1].withheld
            sizes = outcome.sizes
            assert sizes[1] - sizes[0] <= 1
            assert len(outcome.rounds) == (2 if outcome.moved else 1)


@given(group=equal_groups(), topics=topic_counts)
def test_a_cooperative_answer_passes_its_own_check(group: Drawn, topics: dict[str, int]) -> None:
    cluster, members = group
    wanted = sorted(cluster.partition_counts)
    before = assignor_named("cooperative-sticky").assign(cluster, members)
    more = {m: claiming("cooperative-sticky", wanted, before[m], 1) for m in members}
    more |= {f"late-{number}": claiming("cooperative-sticky", wanted, (), -1) for number in range(2)}
    answer = assignor_named("cooperative-sticky").assign(cluster, more)
    check_assignment(cluster, more, answer, RebalanceProtocol.COOPERATIVE)


@given(group=equal_groups())
def test_equal_members_and_topics_are_co_partitioned_by_range(group: Drawn) -> None:
    cluster, members = group
    counts = Counter(cluster.partition_counts.values())
    answer = owners(assignor_named("range").assign(cluster, members))
    for count, shared in counts.items():
        if shared > 1:
            alike = [topic for topic, number in cluster.partition_counts.items() if number == count]
            for number in range(count):
                assert len({answer[topic, number] for topic in alike}) == 1
