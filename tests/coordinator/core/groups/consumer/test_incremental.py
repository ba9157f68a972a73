"""The uniform assignor in a large group: the same answers as the walk over all members, at the cost of what moves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from random import Random
from types import FrameType
from typing import Any, Final

import pytest

from rejoin.coordinator.core.groups.consumer.assignors import AssignorMember
from rejoin.coordinator.core.groups.consumer.assignors.incremental import reassign
from rejoin.coordinator.core.groups.consumer.assignors.uniform import assign_homogeneous
from rejoin.coordinator.core.groups.consumer.members import target as targets_module
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.consumer.model.target_index import TargetIndex
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.member_order import Known, MemberOrder, assignor_order
from rejoin.coordinator.core.groups.timers import member_session_timer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.types import TopicPartition
from tests.coordinator.core.driver import topic
from tests.coordinator.core.groups.consumer_node import ConsumerNode

TOPICS: Final = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "Z1ozb0R2TnBSdUtUcXdFdw")
OFFSETS: Final = TopicPartition("__consumer_offsets", 0)


class Group:
    """Members with their targets, and the index that follows them."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, PartitionsByTopicId] = {}
        self.index: TargetIndex | None = None
        self.order = MemberOrder()
        self.known = Known()

    def join(self, member_id: str) -> None:
        key = member_session_timer(OFFSETS, "g", member_id)
        self.order.grow(len(self.members))
        self.known = self.order.known(self.members, member_id)
        self.members[member_id] = ConsumerMember(member_id, key, self.order.next_number())
        self._touch(member_id)

    def leave(self, member_id: str) -> None:
        del self.members[member_id]
        self.targets.pop(member_id, None)
        self._touch(member_id)

    def give(self, member_id: str, target: PartitionsByTopicId) -> None:
        self.targets[member_id] = target
        self._touch(member_id)

    def _touch(self, member_id: str) -> None:
        if self.index is not None:
            self.index.touch(member_id)

    def by_walk(self) -> dict[str, PartitionsByTopicId]:
        order = assignor_order(self.members, self.known)
        members = {each: AssignorMember(target=self.targets.get(each, {})) for each in order}
        return {member_id: sets(given) for member_id, given in assign_homogeneous(members, self.counts).items()}

    def by_index(self) -> dict[str, PartitionsByTopicId]:
        if self.index is None or not self.index.refresh(self.members, self.targets, self.known):
            self.index = TargetIndex.of(self.counts, self.members, self.targets, self.known)
        assert self.index is not None
        return {member_id: sets(given) for member_id, given in reassign(self.index).items()}


def sets(target: Mapping[str, Any]) -> PartitionsByTopicId:
    return {topic_id: frozenset(partitions) for topic_id, partitions in target.items() if partitions}


@pytest.mark.parametrize("seed", range(12))
def test_only_what_changes_is_answered_and_that_as_by_the_walk(seed: int) -> None:
    random = Random(seed)
    group = Group({topic_id: random.randrange(1, 200) for topic_id in TOPICS[: random.randrange(1, 4)]})
    ids = (f"m-{random.randrange(10**6)}-{number}" for number in count())
    for _ in range(random.randrange(90, 110)):
        group.join(next(ids))
    for _ in range(30):
        expected, changed = group.by_walk(), group.by_index()
        assert expected == {member_id: group.targets.get(member_id, {}) for member_id in group.members} | changed
        assert all(target != group.targets.get(member_id, {}) for member_id, target in changed.items())
        assert [*changed] == [member_id for member_id in expected if member_id in changed]
        assert all([*target] == [*expected[member_id]] for member_id, target in changed.items())
        for member_id, target in changed.items():
            group.give(member_id, target)
        disturb(group, random, ids)


def disturb(group: Group, random: Random, ids: Iterator[str]) -> None:
    """Members come and go; targets are lost, and partitions go from one to another."""
    for _ in range(random.choice((1, 1, 2, 9))):
        some = random.choice([*group.members])
        match random.randrange(5):
            case 0 | 1:
                group.join(next(ids))
            case 2 if len(group.members) > 70:
                group.leave(some)
            case 3:
                group.give(some, {})
            case _:
                other = random.choice([*group.members])
                mine, others = group.targets.get(some, {}), group.targets.get(other, {})
                if some != other:
                    group.give(some, {})
                    both = {each: mine.get(each, frozenset()) | others.get(each, frozenset()) for each in group.counts}
                    group.give(other, sets(both))


def test_targets_that_overlap_or_are_of_other_topics_have_no_index() -> None:
    group = Group({TOPICS[0]: 4})
    for number in range(70):
        group.join(f"m-{number}")
    group.give("m-1", {TOPICS[0]: frozenset({0, 1})})
    index = TargetIndex.of(group.counts, group.members, group.targets, Known())
    assert index is not None
    group.index = index
    group.give("m-2", {TOPICS[0]: frozenset({1})})
    assert not index.refresh(group.members, group.targets, Known())
    assert TargetIndex.of(group.counts, group.members, group.targets, Known()) is None
    group.give("m-2", {TOPICS[1]: frozenset({1})})
    assert TargetIndex.of(group.counts, group.members, group.targets, Known()) is None


# --- in a node

READS: Final = {"subscribed_topic_names": ("large",)}


def large_group(members: int, partitions: int) -> ConsumerNode:
    """A group whose members have all reached their targets."""
    node = ConsumerNode(group_consumer_max_size=10_000, group_consumer_assignment_interval_ms=1)
    node.ask(CreateTopicsRequest(topics=(topic("large", partitions),)), 7, principal="User:setup")
    for number in range(members):
        node.heartbeat(f"m-{number}", 0, **READS)
    node.elapse(10)
    for number in range(members):
        node.heartbeat(f"m-{number}", node.heartbeat(f"m-{number}", 0, **READS).member_epoch)
    return node


def live(node: ConsumerNode, seed: int) -> None:
    """Members join and leave. Now and then the log is slow, and refuses some of what they write."""
    random = Random(seed)
    ids = [f"m-{number}" for number in range(80)]
    for step in range(100):
        node.elapse(2)
        node.logs.defers_appends = random.random() < 0.7 if node.logs.pending_appends else random.random() < 0.2
        while node.logs.pending_appends and not node.logs.defers_appends:
            node.logs.end_append(ErrorCode.NOT_ENOUGH_REPLICAS if random.random() < 0.3 else ErrorCode.NONE)
        if random.random() < 0.5:
            ids.append(f"n-{step}")
            node.heartbeat(ids[-1], 0, **READS)
        elif random.random() < 0.5:
            node.heartbeat(ids.pop(random.randrange(len(ids))), -1)
        else:
            node.heartbeat(random.choice(ids), 0, **READS)


@pytest.mark.parametrize("seed", range(2))
def test_a_node_writes_the_same_records_with_an_index_and_without(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for smallest in (64, sys.maxsize):
        monkeypatch.setattr(targets_module, "SMALLEST_INDEXED", smallest)
        node = large_group(80, 300)
        live(node, seed)
        logs.append(node.log)
    assert logs[0] == logs[1]


@contextmanager
def lines_run() -> Iterator[Callable[[], int]]:
    """Counts the lines of Python that are run, those of comprehensions once for each element."""
    run = 0

    def trace(_: FrameType, event: str, __: object) -> Any:
        nonlocal run
        run += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: run
    finally:
        sys.settrace(before)


def test_a_join_looks_at_no_more_members_in_a_group_of_four_times_the_size() -> None:
    """The same number of partitions moves: two to the member that joins."""
    run = {}
    for members in (200, 800):
        node = large_group(members, members * 5 // 2)
        for joining in ("first", "second"):
            node.elapse(10)
            with lines_run() as lines:
                moved = node.heartbeat(joining, 0, **READS)
                run[members, joining] = lines()
            assert moved.member_epoch > 0
    assert run[800, "second"] < run[200, "second"] * 1.1, run
