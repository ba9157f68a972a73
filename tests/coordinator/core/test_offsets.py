"""Committing and fetching in the versions of their requests, and what a transcript does not show of them."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.records.consumer_offsets import OffsetRecord
from rejoin.protocol.types import ZERO_UUID
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode


def commit(
    driven: DrivenNode, version: int, *, group_id: str = GROUP, request: dict[str, Any] | None = None, **mark: Any
) -> Any:
    usual: dict[str, Any] = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(OffsetCommitRequestPartition(**(usual | mark)),)),)
    asked = OffsetCommitRequest(**({"group_id": group_id, "member_id": "", "topics": topics} | (request or {})))
    return driven.ask(asked, version).topics[0].partitions[0].error_code


def fetch(driven: DrivenNode, version: int) -> Any:
    """The answer for the one partition, in the form of any version."""
    if version < 8:
        topics = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),)
        answer = driven.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version)
        return answer.topics[0].partitions[0]
    wanted = OffsetFetchRequestGroup(
        group_id=GROUP, topics=(OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    )
    return driven.ask(OffsetFetchRequest(groups=(wanted,)), version).groups[0].topics[0].partitions[0]


def written(driven: DrivenNode) -> Any:
    """The value of the offset record that was written last, with its version."""
    record = driven.log[-1]
    assert isinstance(record, OffsetRecord)
    return record.value


@pytest.mark.parametrize("version", range(10))
def test_what_was_committed_is_fetched(version: int) -> None:
    driven = DrivenNode()
    mark: dict[str, Any] = {"committed_leader_epoch": 3} if version >= 6 else {}
    assert commit(driven, version, committed_offset=9, committed_metadata="note", **mark) is ErrorCode.NONE
    found = fetch(driven, version)
    assert (found.committed_offset, found.metadata, found.error_code) == (9, "note", ErrorCode.NONE)
    assert found.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(10))
def test_what_was_not_committed_is_minus_one(version: int) -> None:
    found = fetch(DrivenNode(), version)
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (-1, -1, "")
    assert found.error_code is ErrorCode.NONE


def test_no_metadata_is_empty_metadata() -> None:
    driven = DrivenNode()
    commit(driven, 9, committed_metadata=None)
    assert fetch(driven, 9).metadata == ""


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, ErrorCode.NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, ErrorCode.NONE),
        ("😀" * 2048, ErrorCode.NONE),
        ("😀" * 2048 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
    ids=("full", "one more", "two bytes each", "two units each", "one unit more"),
)
def test_metadata_is_counted_in_utf16_units(metadata: str, error: ErrorCode) -> None:
    """Kafka's setting says bytes and counts Java characters, of which an emoji has two."""
    assert commit(DrivenNode(), 9, committed_metadata=metadata) is error


@pytest.mark.parametrize(
    ("version", "request_fields", "mark", "committed_at", "expires_at", "record_version"),
    [
        (0, {}, {}, START, -1, 4),
        (1, {}, {}, START, -1, 4),
        (1, {}, {"commit_timestamp": START - 5}, START - 5, -1, 4),
        (2, {"retention_time_ms": 1_000}, {}, START, START + 1_000, 1),
        (4, {"retention_time_ms": 0}, {}, START, START, 1),
        (4, {"retention_time_ms": -1}, {}, START, -1, 4),
        (5, {}, {}, START, -1, 4),
        (9, {}, {}, START, -1, 4),
    ],
)
def test_times_of_a_commit(
    version: int,
    request_fields: dict[str, Any],
    mark: dict[str, Any],
    committed_at: int,
    expires_at: int,
    record_version: int,
) -> None:
    """Only the old record version has a place for an expiry of the offset's own."""
    driven = DrivenNode()
    commit(driven, version, request=request_fields, **mark)
    value = written(driven)
    assert (value.data.commit_timestamp, value.data.expire_timestamp) == (committed_at, expires_at)
    assert value.version == record_version


def test_a_fetch_of_several_groups_answers_each() -> None:
    driven = DrivenNode(emulator_deny=("User:*:DESCRIBE:group=secret",))
    commit(driven, 9)
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    groups = (
        OffsetFetchRequestGroup(group_id="nobody", topics=topics),
        OffsetFetchRequestGroup(group_id="secret", topics=topics),
        OffsetFetchRequestGroup(group_id=GROUP, topics=None),
    )
    nobody, secret, ours = driven.ask(OffsetFetchRequest(groups=groups), 8).groups
    assert nobody.topics[0].partitions[0].committed_offset == -1
    assert (secret.error_code, secret.topics) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, ())
    assert ours.topics[0].partitions[0].committed_offset == 5


@pytest.mark.parametrize("version", [1, 5, 7, 8, 9])
def test_a_topic_that_a_fetch_names_twice_is_answered_twice(version: int) -> None:
    driven = DrivenNode()
    commit(driven, version)
    topics: Any
    if version < 8:
        topics = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=(0, 0)) for name in (TOPIC, "u", TOPIC))
        found = driven.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version).topics
    else:
        topics = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=(0, 0)) for name in (TOPIC, "u", TOPIC))
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        found = driven.ask(OffsetFetchRequest(groups=(group,)), version).groups[0].topics
    assert [topic.name for topic in found] == [TOPIC, "u", TOPIC]
    assert [[each.committed_offset for each in topic.partitions] for topic in found] == [[5, 5], [-1, -1], [5, 5]]


def test_topics_of_unknown_ids_are_answered_last() -> None:
    driven = DrivenNode()
    (known,), unknown = driven.node.topic_ids(), "B" * 22
    topics = tuple(
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0,)) for topic_id in (unknown, known, unknown)
    )
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    (answer,) = driven.ask(OffsetFetchRequest(groups=(group,)), 10).groups
    assert [topic.topic_id for topic in answer.topics] == [known, unknown, unknown]


@pytest.mark.parametrize("version", [2, 7])
def test_no_topics_means_all_of_them(version: int) -> None:
    driven = DrivenNode()
    assert driven.ask(OffsetFetchRequest(group_id=GROUP, topics=None), version).topics == ()
    commit(driven, 9)
    (found,) = driven.ask(OffsetFetchRequest(group_id=GROUP, topics=None), version).topics
    assert (found.name, found.partitions[0].committed_offset) == (TOPIC, 5)


@pytest.mark.parametrize("version", [0, 1])
def test_the_oldest_fetches_have_errors_on_partitions_only(version: int) -> None:
    driven = DrivenNode(leads=False)
    topics = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0, 1)),)
    answer = driven.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version)
    assert [partition.error_code for partition in answer.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2
    assert b"errorCode" not in answer.to_json(version).split(b"]")[-1]


def by_id(driven: DrivenNode, topic_id: str | None) -> tuple[ErrorCode, ErrorCode, int]:
    """The errors of a commit and of a fetch that name the topic by its id, and the offset."""
    topic_id = driven.node.topic_ids()[0] if topic_id is None else topic_id
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topics = (OffsetCommitRequestTopic(topic_id=topic_id, partitions=(partition,)),)
    committed = driven.ask(OffsetCommitRequest(group_id=GROUP, member_id="", topics=topics), 10).topics[0]
    asked = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0,))
    wanted = OffsetFetchRequestGroup(group_id=GROUP, topics=(asked,))
    fetched = driven.ask(OffsetFetchRequest(groups=(wanted,)), 10).groups[0].topics[0]
    assert committed.topic_id == fetched.topic_id == topic_id
    (found,) = fetched.partitions
    return committed.partitions[0].error_code, found.error_code, found.committed_offset


def test_topics_by_their_ids() -> None:
    driven = DrivenNode()
    assert by_id(driven, None) == (ErrorCode.NONE, ErrorCode.NONE, 5)
    assert fetch(driven, 9).committed_offset == 5
    everything = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    (topic,) = driven.ask(everything, 10).groups[0].topics
    assert topic.topic_id == driven.node.topic_ids()[0]


@pytest.mark.parametrize("topic_id", ["B" * 22, ZERO_UUID])
def test_an_id_that_no_topic_has(topic_id: str) -> None:
    driven = DrivenNode()
    assert by_id(driven, topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID, -1)


def test_topics_by_id_that_one_may_not_see() -> None:
    driven = DrivenNode(emulator_deny=("User:*:DESCRIBE:topic=t", "User:*:READ:topic=t"))
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert by_id(driven, None) == (denied, denied, -1)
    assert by_id(driven, "B" * 22) == (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID, -1)


def test_topics_that_one_may_not_see() -> None:
    """Named they are an error; where all are asked for they are left out."""
    driven = DrivenNode(emulator_deny=("User:*:DESCRIBE:topic=t",))
    commit(driven, 9)
    assert fetch(driven, 9).error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    everything = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    assert driven.ask(everything, 9).groups[0].topics == ()


@pytest.mark.parametrize(
    ("topic", "partition", "settings", "error"),
    [
        ("__consumer_offsets", 0, {}, ErrorCode.NONE),
        ("__consumer_offsets", 1, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 0, {}, ErrorCode.NONE),
        (TOPIC, 7, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            "__consumer_offsets",
            0,
            {"emulator_deny": ("User:*:CLUSTER_ACTION:cluster=*",)},
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_markers_go_where_the_transaction_was(
    topic: str, partition: int, settings: dict[str, Any], error: ErrorCode
) -> None:
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
        coordinator_epoch=0,
    )
    answer = DrivenNode(**settings).ask(WriteTxnMarkersRequest(markers=(marker,)), 1)
    assert answer.markers[0].topics[0].partitions[0].error_code is error


def test_a_retention_beyond_the_range_of_instants_keeps_the_offset_for_ever() -> None:
    driven = DrivenNode()
    assert commit(driven, 2, request={"retention_time_ms": 2**63 - 1}) is ErrorCode.NONE
    assert (written(driven).version, written(driven).data.expire_timestamp) == (1, 2**63 - 1)
