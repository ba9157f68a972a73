"""Topics that belong to several nodes: one log, changes that overtake one another, answers only for what is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import AppendTopics, Effect
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Elected,
    RecordsWritten,
    TopicsChanged,
    TopicsRecords,
    TopicsStored,
)
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.coordinator import OffsetsDeleted, TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.topics import TOPICS_RECORDS
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import Driver

NOW = 1_700_000_000_000
PARTITION = offsets_partition(0)
BROKERS = (Broker(1, "node-1", 9001), Broker(2, "node-2", 9002))


class Member(Driver):
    """A node that shares a topics log. Appends to it wait until the test ends them."""

    def __init__(self, number: int, topics_log: list[TopicsRecords]) -> None:
        self.topics_log = topics_log
        ids = iter(range(10**9))
        node = Node(
            Settings(offsets_topic_num_partitions=1, broker_id=number),
            lambda: f"{number:08x}{next(ids):024x}",
            topics_logged=True,
        )
        super().__init__(node, NOW)
        self.pending: deque[AppendTopics] = deque()
        self.requests = 0
        self.step(ClusterSeen(BROKERS, {PARTITION: 1}))

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, AppendTopics):
            assert not self.pending, "one change at a time"
            self.pending.append(effect)
        else:
            super().carry_out(effect)

    def ask(self, request: Request, version: int) -> int:
        self.requests += 1
        self.receive(self.requests, request, version)
        return self.requests

    def read_topics(self) -> None:
        """Read everything that is in the topics log."""
        known = self.node.topics_version
        changes = tuple((version, records) for version, records in enumerate(self.topics_log, 1) if version > known)
        self.step(TopicsChanged(changes, len(self.topics_log)))

    def end_append(self, error: ErrorCode = ErrorCode.NONE, *, read_first: bool = False) -> None:
        """End the pending append."""
        wanted = self.pending.popleft()
        if error is not ErrorCode.NONE:
            self.step(TopicsStored(wanted.append_id, error=error))
        elif wanted.version != len(self.topics_log):
            self.read_topics()
            self.step(TopicsStored(wanted.append_id, overtaken=True))
        else:
            # As a log would keep it: as text.
            self.topics_log.append(TOPICS_RECORDS.validate_json(TOPICS_RECORDS.dump_json(wanted.records)))
            version = len(self.topics_log)
            if read_first:
                self.read_topics()
            self.step(TopicsStored(wanted.append_id, version))

    def names(self) -> list[tuple[str, str, int, list[int | None]]]:
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


def alter(name: str, config: str, value: str) -> IncrementalAlterConfigsRequest:
    change = IncrementallyAlterableConfig(name=config, config_operation=0, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=2, resource_name=name, configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def setting(member: Member, name: str, config: str) -> str | None:
    """The value of a topic's setting, as a node describes it."""
    resource = DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=(config,))
    asked = member.ask(DescribeConfigsRequest(resources=(resource,)), 1)
    response: Any = member.replies[asked]
    value: str | None = response.results[0].configs[0].value
    return value


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
    one.end_append()
    assert errors(one, asked) == [ErrorCode.NONE]
    assert other.names() == []
    other.read_topics()
    assert other.names() == one.names()


def test_a_setting_that_is_changed_is_that_of_all_nodes_once_it_is_stored() -> None:
    one, other = two()
    one.ask(create("orders"), 7)
    one.end_append()
    asked = one.ask(alter("orders", "retention.ms", "7"), 1)
    assert (asked in one.replies, setting(one, "orders", "retention.ms")) == (False, "604800000")
    one.end_append()
    other.read_topics()
    assert [setting(member, "orders", "retention.ms") for member in (one, other)] == ["7", "7"]
    failed = one.ask(alter("orders", "retention.ms", "8"), 1)
    one.end_append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert (errors(one, asked), errors(one, failed)) == ([ErrorCode.NONE], [ErrorCode.KAFKA_STORAGE_ERROR])
    assert setting(one, "orders", "retention.ms") == "7"


def test_a_setting_of_a_topic_that_another_node_deletes_meanwhile_is_not_changed() -> None:
    one, other = two()
    one.ask(create("orders"), 7)
    one.end_append()
    other.read_topics()
    asked = one.ask(alter("orders", "retention.ms", "7"), 1)
    other.ask(delete("orders"), 6)
    other.end_append()
    one.end_append()
    assert errors(one, asked) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_slower_of_two_creations_of_a_topic_is_answered_that_it_exists() -> None:
    one, other = two()
    first, second = one.ask(create("orders"), 7), other.ask(create("orders", "payments"), 7)
    one.end_append()
    other.end_append()
    assert other.replies == {}, "decided again, on what the other has stored"
    other.end_append()
    assert errors(one, first) == [ErrorCode.NONE]
    assert errors(other, second) == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    one.read_topics()
    assert one.names() == other.names()


def test_a_change_that_is_read_before_its_append_completes_is_made_once() -> None:
    one, _ = two()
    one.ask(create("orders"), 7)
    one.end_append()
    asked = one.ask(grow("orders", 5), 3)
    one.end_append(read_first=True)
    assert errors(one, asked) == [ErrorCode.NONE]
    assert [partitions for _, _, partitions, _ in one.names()] == [5]
    assert [type(event) for event in one.events].count(TopicCreated) == 1


def test_a_node_that_shares_events_emits_those_of_its_own_changes_only() -> None:
    one, other = two()
    for request, version in ((create("orders"), 7), (grow("orders", 5), 3), (delete("orders"), 5)):
        one.ask(request, version)
        one.end_append()
    changes = tuple(enumerate(one.topics_log, 1))
    other.step(TopicsChanged(changes[:2], 2, shares_events=True))
    assert [partitions for _, _, partitions, _ in other.names()] == [5]
    other.step(TopicsChanged(changes, 3, shares_events=True))
    assert other.names() == []
    kinds = (TopicCreated, TopicGrown, TopicDeleted)
    assert [type(event) for event in one.events if isinstance(event, kinds)] == list(kinds)
    assert not [event for event in other.events if isinstance(event, kinds)]


def test_a_change_that_cannot_be_stored_is_refused_and_the_next_one_tried() -> None:
    one, _ = two()
    first, second = one.ask(create("orders"), 7), one.ask(create("payments"), 7)
    one.end_append(ErrorCode.REQUEST_TIMED_OUT)
    assert errors(one, first) == [ErrorCode.REQUEST_TIMED_OUT]
    one.end_append()
    assert errors(one, second) == [ErrorCode.NONE]
    assert [name for name, *_ in one.names()] == ["payments"]


def test_offsets_of_a_topic_that_another_node_deletes_go_with_it() -> None:
    one, other = two()
    one.step(Elected(PARTITION, 0))
    one.ask(create("orders"), 7)
    one.end_append()
    committed = one.ask(commit("orders"), 8)
    assert committed in one.replies
    other.read_topics()
    other.ask(delete("orders"), 6)
    other.end_append()
    one.read_topics()
    deleted = [event for event in one.events if isinstance(event, OffsetsDeleted)]
    assert [(event.reason, len(event.offsets)) for event in deleted] == [("topic-deleted", 1)]


def test_offsets_of_a_topic_that_went_without_a_leader_are_dropped_on_load() -> None:
    one, other = two()
    one.step(Elected(PARTITION, 0))
    one.ask(create("orders", "payments"), 7)
    one.end_append()
    one.ask(commit("orders"), 8)
    one.ask(commit("payments"), 8)
    other.read_topics()
    other.ask(delete("orders"), 6)
    other.end_append()
    other.log.extend(one.log)
    other.step(Elected(PARTITION, 1))
    left = {view.topic for view in other.node.describe_offsets("g", NOW)}
    assert left == {"payments"}


def test_an_automatic_topic_is_made_once_though_two_nodes_were_asked() -> None:
    one, other = two()
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=True)
    asked = one.ask(wanted, 9), other.ask(wanted, 9), one.ask(wanted, 9)
    assert set(one.replies) == {asked[0], asked[2]}, "this answer does not wait: it says that the topic is unknown"
    one.end_append()
    other.end_append()
    assert not other.pending
    assert not one.pending
    assert one.names() == other.names() != []


def test_a_whole_log_makes_topics_disappear_that_are_not_in_it() -> None:
    one, other = two()
    one.ask(create("orders", "payments"), 7)
    one.end_append()
    other.ask(create("orders"), 7)
    other.read_topics()
    payments = one.names()[1][1]
    kept = tuple(record for record in one.topics_log[0] if getattr(record.data, "topic_id", None) == payments)
    other.step(TopicsChanged(((5, kept),), 7, whole=True))
    assert [name for name, *_ in other.names()] == ["payments"]
    assert other.node.topics_version == 7


ACTIONS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from("abc"), st.integers(1, 3)),
    st.tuples(st.just("grow"), st.sampled_from("abc"), st.integers(2, 6)),
    st.tuples(st.just("delete"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("write"), st.sampled_from("abc"), st.integers(1, 9)),
    st.tuples(st.sampled_from(("read", "let go", "read first")), st.just(""), st.just(0)),
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
        case "read":
            member.read_topics()
        case _ if member.pending:
            member.end_append(read_first=verb == "read first")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), ACTIONS), max_size=40))
def test_all_nodes_end_up_with_the_same_topics_and_every_request_is_answered(
    steps: list[tuple[int, tuple[str, str, int]]],
) -> None:
    log: list[TopicsRecords] = []
    members = [Member(number, log) for number in (1, 2, 3)]
    asked: list[tuple[Member, int]] = []
    for who, action in steps:
        asked += [(members[who], number) for number in apply(members[who], action)]
    while any(member.pending for member in members):
        for member in members:
            if member.pending:
                member.end_append()
    fresh = Member(4, log)
    for member in (*members, fresh):
        member.read_topics()
        assert member.node.topics_stored
    assert all(number in member.replies for member, number in asked)
    assert all(member.names() == fresh.names() for member in members)
