"""Topics in Kafka's own requests: creating, growing, deleting, describing, and a log whose end moves with time."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from rejoin.protocol.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from rejoin.protocol.messages.topics.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.types import ZERO_UUID
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import PARTITION, DrivenNode, topic

RATE = "emulator.records.per.second"
LATEST, EARLIEST, NEWEST = -1, -2, -3


def create(driven: DrivenNode, *topics: Any, validate_only: bool = False) -> tuple[CreatableTopicResult, ...]:
    results: tuple[CreatableTopicResult, ...] = driven.ask(
        CreateTopicsRequest(topics=topics, validate_only=validate_only), 7
    ).topics
    return results


def assigned(*indexes: int, nodes: tuple[int, ...] = (1,)) -> dict[str, Any]:
    """Partitions given one by one instead of by their number."""
    replicas = tuple(CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index in indexes)
    return {"num_partitions": -1, "replication_factor": -1, "assignments": replicas}


def rated(rate: str | None) -> dict[str, Any]:
    return {"configs": (CreatableTopicConfig(name=RATE, value=rate),)}


def grow(
    driven: DrivenNode, name: str, count: int, nodes: int | None = None, **more: Any
) -> CreatePartitionsTopicResult:
    assignments = None if nodes is None else (CreatePartitionsAssignment(broker_ids=(1,)),) * nodes
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    usual: dict[str, Any] = {"topics": (wanted,), "timeout_ms": 1000, "validate_only": False}
    request = CreatePartitionsRequest(**(usual | more))
    result: CreatePartitionsTopicResult = driven.ask(request, 3).results[0]
    return result


def delete(driven: DrivenNode, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    return list(driven.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6).responses)


def named(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=ZERO_UUID)


def metadata(driven: DrivenNode, *names: str, creates: bool = False, version: int = 12) -> MetadataResponse:
    wanted = tuple(
        MetadataRequestTopic(name=name) if version < 10 else MetadataRequestTopic(name=name, topic_id=ZERO_UUID)
        for name in names
    )
    return ask_metadata(driven, wanted or None, creates, version)


def ask_metadata(driven: DrivenNode, topics: Any, creates: bool, version: int) -> MetadataResponse:
    given: dict[str, Any] = {"topics": topics}
    if version >= 4:
        given["allow_auto_topic_creation"] = creates
    if version >= 8:
        given["include_topic_authorized_operations"] = False
    if 8 <= version <= 10:
        given["include_cluster_authorized_operations"] = False
    answer: MetadataResponse = driven.ask(MetadataRequest(**given), version)
    return answer


def shown(driven: DrivenNode, name: str) -> MetadataResponseTopic:
    return metadata(driven, name).topics[0]


def end(driven: DrivenNode, name: str, index: int = 0, timestamp: int = LATEST) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsTopic(name=name, partitions=(ListOffsetsPartition(partition_index=index, timestamp=timestamp),))
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(wanted,), timeout_ms=0)
    found: ListOffsetsPartitionResponse = driven.ask(request, 10).topics[0].partitions[0]
    return found


# --- create


def test_a_topic_is_created() -> None:
    driven = DrivenNode()
    (result,) = create(driven, topic("orders", 3))
    assert (result.name, result.error_code) == ("orders", ErrorCode.NONE)
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert result.topic_id == shown(driven, "orders").topic_id != ZERO_UUID
    assert driven.emitted(TopicCreated)[-1].partition_count == 3
    assert [partition.partition_index for partition in shown(driven, "orders").partitions] == [0, 1, 2]


def test_minus_one_means_the_default() -> None:
    driven = DrivenNode(num_partitions=4)
    (result,) = create(driven, topic("orders", -1, replication_factor=-1))
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_partitions_may_be_assigned_by_hand() -> None:
    (result,) = create(DrivenNode(), topic("orders", -1, **assigned(1, 0)))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)


CANNOT_CREATE = [
    (topic("t", 1), ErrorCode.TOPIC_ALREADY_EXISTS),
    (topic("__consumer_offsets", 1), ErrorCode.TOPIC_ALREADY_EXISTS),
    (topic("", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic(".", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("..", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("or/ders", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("ordérs", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("orders\n", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("o" * 250, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("orders", 0), ErrorCode.INVALID_PARTITIONS),
    (topic("orders", -2), ErrorCode.INVALID_PARTITIONS),
    (topic("orders", 100_001), ErrorCode.POLICY_VIOLATION),
    (topic("orders", 1, replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("orders", 1, replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("orders", 1, replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("orders", 1, **(assigned(0) | {"num_partitions": 1})), ErrorCode.INVALID_REQUEST),
    (topic("orders", 1, **(assigned(0) | {"replication_factor": 1})), ErrorCode.INVALID_REQUEST),
    (topic("orders", -1, **assigned(1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("orders", -1, **assigned(0, 0)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("orders", -1, **assigned(0, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("orders", -1, **assigned(0, nodes=())), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("orders", 1, **rated("fast")), ErrorCode.INVALID_CONFIG),
    (topic("orders", 1, **rated("-1")), ErrorCode.INVALID_CONFIG),
    (topic("orders", 1, **rated("nan")), ErrorCode.INVALID_CONFIG),
    (topic("orders", 1, **rated("inf")), ErrorCode.INVALID_CONFIG),
    (topic("orders", 1, **rated(None)), ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("wanted", "error"), CANNOT_CREATE)
def test_a_topic_that_cannot_be_is_not_created(wanted: Any, error: ErrorCode) -> None:
    driven = DrivenNode()
    before = driven.node.describe_topics(driven.now)
    (result,) = create(driven, wanted)
    assert (result.name, result.error_code) == (wanted.name, error)
    assert result.error_message, "it is said what is wrong"
    assert driven.node.describe_topics(driven.now) == before


def test_longest_and_strangest_names_are_fine() -> None:
    names = ("o" * 249, "...", "A-b_c.9")
    assert {result.error_code for result in create(DrivenNode(), *(topic(name, 1) for name in names))} == {
        ErrorCode.NONE
    }


def test_each_topic_of_a_request_stands_for_itself() -> None:
    results = create(DrivenNode(), topic("a", 1), topic("t", 1), topic("b", 0), topic("c", 1))
    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.NONE),
        ("t", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("b", ErrorCode.INVALID_PARTITIONS),
        ("c", ErrorCode.NONE),
    ]


def test_a_topic_named_twice_in_a_request_is_refused_once() -> None:
    driven = DrivenNode()
    results = create(driven, topic("a", 1), topic("b", 1), topic("a", 2))
    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]
    assert shown(driven, "a").error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_validating_creates_nothing() -> None:
    driven = DrivenNode()
    (good, bad) = create(driven, topic("orders", 3), topic("payments", 0), validate_only=True)
    assert (good.error_code, good.num_partitions) == (ErrorCode.NONE, 3)
    assert bad.error_code is ErrorCode.INVALID_PARTITIONS
    assert shown(driven, "orders").error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_of_the_same_name_have_different_ids() -> None:
    driven = DrivenNode()
    (first,) = create(driven, topic("orders", 1))
    delete(driven, named("orders"))
    (second,) = create(driven, topic("orders", 1))
    assert first.topic_id != second.topic_id


# --- grow


def test_a_topic_grows() -> None:
    driven = DrivenNode()
    assert grow(driven, "t", 4).error_code is ErrorCode.NONE
    assert len(shown(driven, "t").partitions) == 4
    (event,) = driven.emitted(TopicGrown)
    assert (event.topic, event.previous_partition_count, event.partition_count) == ("t", 1, 4)
    assert grow(driven, "t", 6, nodes=2).error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "count", "nodes", "error"),
    [
        ("nowhere", 2, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 0, None, ErrorCode.INVALID_PARTITIONS),
        ("t", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 100_001, None, ErrorCode.POLICY_VIOLATION),
        ("t", 3, 1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, 3, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_cannot_grow_stays(name: str, count: int, nodes: int | None, error: ErrorCode) -> None:
    driven = DrivenNode()
    result = grow(driven, name, count, nodes)
    assert (result.name, result.error_code) == (name, error)
    assert result.error_message
    assert len(shown(driven, "t").partitions) == 1


def test_growing_can_be_tried_and_not_done() -> None:
    driven = DrivenNode()
    assert grow(driven, "t", 4, validate_only=True).error_code is ErrorCode.NONE
    assert len(shown(driven, "t").partitions) == 1


def test_a_topic_named_twice_does_not_grow() -> None:
    driven = DrivenNode()
    wanted = CreatePartitionsTopic(name="t", count=4, assignments=None)
    assert grow(driven, "t", 4, topics=(wanted, wanted)).error_code is ErrorCode.INVALID_REQUEST
    assert len(shown(driven, "t").partitions) == 1


# --- delete


def test_topics_are_deleted_by_name_and_by_id() -> None:
    driven = DrivenNode()
    (orders, _) = create(driven, topic("orders", 1), topic("payments", 1))
    by_id, by_name = delete(driven, DeleteTopicState(name=None, topic_id=orders.topic_id), named("payments"))
    assert (by_id.name, by_id.topic_id, by_id.error_code) == ("orders", orders.topic_id, ErrorCode.NONE)
    assert (by_name.name, by_name.error_code) == ("payments", ErrorCode.NONE)
    assert [event.topic for event in driven.emitted(TopicDeleted)] == ["orders", "payments"]
    assert [found.name for found in metadata(driven).topics] == ["t"]


@pytest.mark.parametrize("version", [0, 5])
def test_before_v6_topics_are_deleted_by_name(version: int) -> None:
    driven = DrivenNode()
    answer = driven.ask(DeleteTopicsRequest(topic_names=("t", "nowhere"), timeout_ms=1000), version)
    assert [(result.name, result.error_code) for result in answer.responses] == [
        ("t", ErrorCode.NONE),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_what_is_not_there_cannot_be_deleted() -> None:
    unknown_name, unknown_id = delete(DrivenNode(), named("nowhere"), DeleteTopicState(name=None, topic_id="B" * 22))
    assert unknown_name.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (unknown_id.name, unknown_id.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


# --- describe


def test_metadata_names_the_nodes_and_every_topic() -> None:
    driven = DrivenNode()
    create(driven, topic("b", 1), topic("a", 1))
    answer = metadata(driven)
    assert [(node.node_id, node.host, node.port) for node in answer.brokers] == [(1, "node-1", 9095)]
    assert answer.controller_id == 1
    assert [found.name for found in answer.topics] == ["a", "b", "t"]


def test_synthetic_logs_are_led_by_the_nodes_in_turn() -> None:
    driven = DrivenNode()
    driven.step(ClusterSeen((Broker(1, "one", 1), Broker(2, "two", 2)), {PARTITION: 1}))
    create(driven, topic("orders", 3, **rated("1")))
    assert [partition.leader_id for partition in shown(driven, "orders").partitions] == [1, 2, 1]


def test_without_nodes_partitions_have_no_leader() -> None:
    driven = DrivenNode()
    driven.step(ClusterSeen((), {}))
    (partition,) = shown(driven, "t").partitions
    assert (partition.leader_id, partition.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_an_empty_list_means_all_in_v0_and_none_later() -> None:
    driven = DrivenNode()
    assert [found.name for found in ask_metadata(driven, (), False, 0).topics] == ["t"]
    assert ask_metadata(driven, (), False, 1).topics == ()
    assert [found.name for found in ask_metadata(driven, None, False, 1).topics] == ["t"]


def test_topics_are_found_by_id() -> None:
    driven = DrivenNode()
    topic_id = shown(driven, "t").topic_id
    wanted = (
        MetadataRequestTopic(name=None, topic_id=topic_id),
        MetadataRequestTopic(name=None, topic_id="B" * 22),
    )
    found, missing = ask_metadata(driven, wanted, False, 12).topics
    assert (found.name, found.error_code) == ("t", ErrorCode.NONE)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, "B" * 22, ErrorCode.UNKNOWN_TOPIC_ID)


def test_with_ids_names_are_not_looked_at() -> None:
    driven = DrivenNode()
    topic_id = shown(driven, "t").topic_id
    wanted = (MetadataRequestTopic(name="", topic_id=topic_id), MetadataRequestTopic(name="other", topic_id=ZERO_UUID))
    assert [found.name for found in ask_metadata(driven, wanted, False, 13).topics] == ["t"]


def test_versions_before_12_have_ids_and_do_not_find_by_them() -> None:
    driven = DrivenNode()
    topic_id = shown(driven, "t").topic_id
    wanted = (MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name="t", topic_id=ZERO_UUID))
    for version in (10, 11):
        by_id, by_name = ask_metadata(driven, wanted, False, version).topics
        assert (by_id.name, by_id.error_code) == ("", ErrorCode.INVALID_REQUEST)
        assert (by_name.name, by_name.error_code) == ("t", ErrorCode.INVALID_REQUEST)


def test_asking_for_a_topic_can_create_it() -> None:
    """It is made aside: the first answer still says that it is unknown, the next one has it."""
    driven = DrivenNode(num_partitions=3)
    assert metadata(driven, "new", creates=True).topics[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(shown(driven, "new").partitions) == 3


@pytest.mark.parametrize(
    ("settings", "creates", "error"),
    [
        ({"auto_create_topics_enable": False}, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({}, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"emulator_deny": ("User:ANONYMOUS:CREATE:topic=new",)}, True, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_asking_for_a_topic_need_not_create_it(settings: dict[str, Any], creates: bool, error: ErrorCode) -> None:
    driven = DrivenNode(**settings)
    for _ in range(2):
        answer = metadata(driven, "new", creates=creates, version=12).topics[0]
        assert answer.error_code is error


def test_before_v4_asking_always_creates() -> None:
    driven = DrivenNode()
    metadata(driven, "new", version=3)
    assert metadata(driven, "new", version=3).topics[0].error_code is ErrorCode.NONE


@pytest.mark.parametrize("name", ["no/pe", "", "..", "o" * 250])
def test_asking_for_what_cannot_be_creates_nothing(name: str) -> None:
    driven = DrivenNode()
    assert metadata(driven, name, creates=True).topics[0].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert name not in [found.name for found in metadata(driven).topics]


# --- rights


@pytest.mark.parametrize("right", ["CREATE:cluster=*", "CREATE:topic=orders", "ALL:topic=ord*"])
def test_creating_needs_the_right(right: str) -> None:
    driven = DrivenNode(emulator_deny=(f"User:ANONYMOUS:{right}",))
    (result,) = create(driven, topic("orders", 1))
    assert result.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_changing_needs_the_right() -> None:
    driven = DrivenNode(emulator_deny=("User:ANONYMOUS:ALTER:topic=t", "User:ANONYMOUS:DELETE:topic=t"))
    assert grow(driven, "t", 2).error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert delete(driven, named("t"))[0].error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_one_may_not_see_is_left_out_or_refused() -> None:
    driven = DrivenNode(emulator_deny=("User:*:DESCRIBE:topic=t",))
    assert metadata(driven).topics == ()
    assert shown(driven, "t").error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert end(driven, "t").error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic_id = driven.node.describe_topics(driven.now)[0].topic_id
    wanted = (MetadataRequestTopic(name=None, topic_id=topic_id),)
    (hidden,) = ask_metadata(driven, wanted, False, 12).topics
    assert (hidden.name, hidden.topic_id) == (None, topic_id)
    assert hidden.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED, "an id gives nothing away"


# --- the log


def test_a_topic_has_no_records_unless_a_rate_says_so() -> None:
    driven = DrivenNode()
    driven.elapse(3_600_000)
    assert end(driven, "t").offset == 0


def test_the_end_moves_with_time() -> None:
    driven = DrivenNode()
    create(driven, topic("orders", 2, **rated("2.5")))
    offsets = []
    for _ in range(5):
        offsets.append(end(driven, "orders").offset)
        driven.elapse(1_000)
    assert offsets == [0, 2, 5, 7, 10]
    assert end(driven, "orders", 1).offset == 12


def test_the_rate_of_new_topics_is_a_setting() -> None:
    driven = DrivenNode(emulator_records_per_second=10.0)
    create(driven, topic("orders", 1), topic("slow", 1, **rated("1")))
    driven.elapse(10_000)
    assert (end(driven, "orders").offset, end(driven, "slow").offset) == (100, 10)


def test_new_partitions_begin_when_they_are_made() -> None:
    driven = DrivenNode()
    create(driven, topic("orders", 1, **rated("1")))
    driven.elapse(10_000)
    grow(driven, "orders", 2)
    driven.elapse(5_000)
    assert [end(driven, "orders", index).offset for index in (0, 1)] == [15, 5]


@pytest.mark.parametrize(
    ("timestamp", "offset", "at"),
    [
        (LATEST, 20, -1),
        (EARLIEST, 0, -1),
        (NEWEST, 19, START + 9_500),
        (START - 1, 0, START),
        (START, 0, START),
        (START + 1, 1, START + 500),
        (START + 5_000, 10, START + 5_000),
        (START + 9_500, 19, START + 9_500),
        (START + 9_501, -1, -1),
        (START + 60_000, -1, -1),
    ],
)
def test_offsets_are_found_by_time(timestamp: int, offset: int, at: int) -> None:
    """Two records a second for ten seconds: offsets 0 to 19, the last after 9.5 s."""
    driven = DrivenNode()
    create(driven, topic("orders", 1, **rated("2")))
    driven.elapse(10_000)
    found = end(driven, "orders", timestamp=timestamp)
    assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, offset, at)


def test_an_empty_partition_has_nothing_at_any_time() -> None:
    driven = DrivenNode()
    assert (end(driven, "t", timestamp=EARLIEST).offset, end(driven, "t", timestamp=LATEST).offset) == (0, 0)
    assert (end(driven, "t", timestamp=NEWEST).offset, end(driven, "t", timestamp=START).offset) == (-1, -1)


@pytest.mark.parametrize(("name", "index"), [("nowhere", 0), ("t", 1), ("t", -1)])
def test_offsets_of_what_is_not_there(name: str, index: int) -> None:
    found = end(DrivenNode(), name, index)
    assert (found.error_code, found.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize(
    ("timestamp", "count", "offsets"), [(LATEST, 2, (20, 0)), (LATEST, 1, (20,)), (EARLIEST, 5, (0,))]
)
def test_the_oldest_version_lists_where_segments_begin(timestamp: int, count: int, offsets: tuple[int, ...]) -> None:
    driven = DrivenNode()
    create(driven, topic("orders", 1, **rated("2")))
    driven.elapse(10_000)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=(wanted,)),))
    assert driven.ask(request, 0).topics[0].partitions[0].old_style_offsets == offsets
