"""Topics that belong to several nodes: one log, changes that overtake one another, answers only for what is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, AppendTopics, Effect, ReadLog, Reply
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elected,
    Input,
    LogRead,
    Received,
    RecordsWritten,
    Stored,
    TopicsChanged,
    TopicsRecords,
    TopicsStored,
)
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import OffsetsDeleted, TopicCreated
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.consumer_offsets import Record, offsets_partition
from rejoin.protocol.records.topics import TOPICS_RECORDS
from rejoin.protocol.types import ZERO_UUID

NOW = 1_700_000_000_000
PARTITION = offsets_partition(0)
BROKERS = (Broker(1, "node-1", 9001), Broker(2, "node-2", 9002))


class Member:
    """A node that shares a topics log. Appends wait until they are let go."""

    def __init__(self, number: int, log: list[TopicsRecords]) -> None:
        self.log = log
        ids = iter(range(10**9))
        self.node = Node(
            Settings(offsets_topic_num_partitions=1, broker_id=number),
            lambda: f"{number:08x}{next(ids):024x}",
            topics_logged=True,
        )
        self.waiting: deque[AppendTopics] = deque()
        self.replies: dict[int, Response] = {}
        self.events: list[Event] = []
        self.records: list[Record] = []
        self.asked = 0
        self.step(ClusterSeen(BROKERS, {PARTITION: 1}))

    def step(self, what: Input) -> None:
        for effect in self.node.step(what, NOW):
            self._take(effect)

    def _take(self, effect: Effect) -> None:
        match effect:
            case Reply(token=int(token), response=response):
                assert token not in self.replies
                self.replies[token] = response
            case AppendTopics():
                assert not self.waiting, "one change at a time"
                self.waiting.append(effect)
            case Append():
                self.records.extend(effect.records)
                self.step(Stored(PARTITION, effect.epoch, effect.append_id))
            case ReadLog():
                self.step(LogRead(PARTITION, effect.epoch, tuple(self.records), True))
            case Event():
                self.events.append(effect)

    def ask(self, request: Request, version: int) -> int:
        self.asked += 1
        self.step(Received(self.asked, request, Context(version)))
        return self.asked

    def hear(self) -> None:
        """Learn of everything that is in the log."""
        known = self.node.topics_version
        changes = tuple((version, records) for version, records in enumerate(self.log, 1) if version > known)
        self.step(TopicsChanged(changes, len(self.log)))

    def let_go(self, error: ErrorCode = ErrorCode.NONE, *, heard_first: bool = False) -> None:
        """End the append that waits."""
        wanted = self.waiting.popleft()
        if error is not ErrorCode.NONE:
            self.step(TopicsStored(wanted.append_id, error=error))
        elif wanted.version != len(self.log):
            self.hear()
            self.step(TopicsStored(wanted.append_id, overtaken=True))
        else:
            # As a log would keep it: as text.
            self.log.append(TOPICS_RECORDS.validate_json(TOPICS_RECORDS.dump_json(wanted.records)))
            version = len(self.log)
            if heard_first:
                self.hear()
            self.step(TopicsStored(wanted.append_id, version))

    def names(self) -> list[tuple[str, str, int, list[int]]]:
        views = self.node.describe_topics(NOW)
        return [(view.topic, view.topic_id, view.partitions, view.end_offsets) for view in views]


def create(*names: str, partitions: int = 2) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=())
            for name in names
        )
    )


def grow(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout_ms=1_000, validate_only=False)


def delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names), timeout_ms=1_000
    )


def commit(name: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequestTopic(name=name, partitions=(partition,))
    return OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=(topic,))


def two() -> tuple[Member, Member]:
    log: list[TopicsRecords] = []
    return Member(1, log), Member(2, log)


def errors(member: Member, asked: int) -> list[ErrorCode]:
    response: Any = member.replies[asked]
    results = getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
    return [result.error_code for result in results]


def test_nothing_is_answered_or_seen_before_it_is_stored() -> None:
    one, other = two()
    asked = one.ask(create("orders"), 7)
    assert asked not in one.replies
    assert one.names() == []
    one.let_go()
    assert errors(one, asked) == [ErrorCode.NONE]
    assert other.names() == []
    other.hear()
    assert other.names() == one.names()


def test_the_slower_of_two_who_create_the_same_topic_is_told_that_it_exists() -> None:
    one, other = two()
    first, second = one.ask(create("orders"), 7), other.ask(create("orders", "payments"), 7)
    one.let_go()
    other.let_go()
    assert other.replies == {}, "decided again, on what the other has stored"
    other.let_go()
    assert errors(one, first) == [ErrorCode.NONE]
    assert errors(other, second) == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    one.hear()
    assert one.names() == other.names()


def test_a_change_that_is_heard_of_before_its_own_end_is_made_once() -> None:
    one, _ = two()
    one.ask(create("orders"), 7)
    one.let_go()
    asked = one.ask(grow("orders", 5), 3)
    one.let_go(heard_first=True)
    assert errors(one, asked) == [ErrorCode.NONE]
    assert [partitions for _, _, partitions, _ in one.names()] == [5]
    assert [type(event) for event in one.events].count(TopicCreated) == 1


def test_a_change_that_cannot_be_stored_is_refused_and_the_next_one_tried() -> None:
    one, _ = two()
    first, second = one.ask(create("orders"), 7), one.ask(create("payments"), 7)
    one.let_go(ErrorCode.REQUEST_TIMED_OUT)
    assert errors(one, first) == [ErrorCode.REQUEST_TIMED_OUT]
    one.let_go()
    assert errors(one, second) == [ErrorCode.NONE]
    assert [name for name, *_ in one.names()] == ["payments"]


def test_offsets_of_a_topic_that_another_node_deletes_go_with_it() -> None:
    one, other = two()
    one.step(Elected(PARTITION, 0))
    one.ask(create("orders"), 7)
    one.let_go()
    committed = one.ask(commit("orders"), 8)
    assert committed in one.replies
    other.hear()
    other.ask(delete("orders"), 6)
    other.let_go()
    one.hear()
    deleted = [event for event in one.events if isinstance(event, OffsetsDeleted)]
    assert [(event.reason, len(event.offsets)) for event in deleted] == [("topic-deleted", 1)]


def test_offsets_of_a_topic_that_went_while_nobody_led_are_dropped_on_load() -> None:
    one, other = two()
    one.step(Elected(PARTITION, 0))
    one.ask(create("orders", "payments"), 7)
    one.let_go()
    one.ask(commit("orders"), 8)
    one.ask(commit("payments"), 8)
    other.hear()
    other.ask(delete("orders"), 6)
    other.let_go()
    other.records = one.records
    other.step(Elected(PARTITION, 1))
    left = {view.topic for view in other.node.describe_offsets("g", NOW)}
    assert left == {"payments"}


def test_an_automatic_topic_is_made_once_though_two_nodes_were_asked() -> None:
    one, other = two()
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=True)
    asked = one.ask(wanted, 9), other.ask(wanted, 9), one.ask(wanted, 9)
    assert set(one.replies) == {asked[0], asked[2]}, "this answer does not wait: it says that the topic is unknown"
    one.let_go()
    other.let_go()
    assert not other.waiting
    assert not one.waiting
    assert one.names() == other.names() != []


def test_a_whole_log_makes_topics_disappear_that_are_not_in_it() -> None:
    one, other = two()
    one.ask(create("orders", "payments"), 7)
    one.let_go()
    other.ask(create("orders"), 7)
    other.hear()
    kept = tuple(record for record in one.log[0] if record.data.topic_id == one.names()[1][1])
    other.step(TopicsChanged(((5, kept),), 7, whole=True))
    assert [name for name, *_ in other.names()] == ["payments"]
    assert other.node.topics_version == 7


ACTIONS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from("abc"), st.integers(1, 3)),
    st.tuples(st.just("grow"), st.sampled_from("abc"), st.integers(2, 6)),
    st.tuples(st.just("delete"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("write"), st.sampled_from("abc"), st.integers(1, 9)),
    st.tuples(st.sampled_from(("hear", "let go", "heard first")), st.just(""), st.just(0)),
)


def apply(member: Member, action: tuple[str, str, int]) -> Iterator[int]:
    verb, name, number = action
    match verb:
        case "create":
            yield member.ask(create(name, partitions=number), 7)
        case "grow":
            yield member.ask(grow(name, number), 3)
        case "delete":
            yield member.ask(delete(name), 6)
        case "write":
            member.step(RecordsWritten(name, 0, number))
        case "hear":
            member.hear()
        case _ if member.waiting:
            member.let_go(heard_first=verb == "heard first")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), ACTIONS), max_size=40))
def test_all_nodes_end_up_with_the_same_topics_and_everybody_is_answered(
    steps: list[tuple[int, tuple[str, str, int]]],
) -> None:
    log: list[TopicsRecords] = []
    members = [Member(number, log) for number in (1, 2, 3)]
    asked: list[tuple[Member, int]] = []
    for who, action in steps:
        asked += [(members[who], number) for number in apply(members[who], action)]
    while any(member.waiting for member in members):
        for member in members:
            if member.waiting:
                member.let_go()
    fresh = Member(4, log)
    for member in (*members, fresh):
        member.hear()
        assert member.node.topics_settled
    assert all(number in member.replies for member, number in asked)
    assert all(member.names() == fresh.names() for member in members)
