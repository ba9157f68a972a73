"""``__consumer_offsets`` as consumers read it: which records, at which offsets, in Kafka's binary format."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import pytest

from rejoin.coordinator.core.fetch.offsets_topic import LEAST_TO_COMPACT
from rejoin.coordinator.storage.compaction import compacted
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.records.consumer_offsets import (
    OFFSETS_TOPIC,
    OFFSETS_TOPIC_ID,
    OffsetCommitValue,
    offset_record,
)
from rejoin.protocol.records.keyed import KeyedRecord
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.wire.keyed_records import key_bytes, value_bytes
from rejoin.protocol.wire.primitives import uuid_text
from rejoin.protocol.wire.record_batch import crc_of, parse_header
from rejoin.protocol.wire.records import read_batch
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import GROUP, PARTITION, TOPIC, DrivenNode, commit, join
from tests.coordinator.core.fetch.test_fetch import MEBIBYTE, fetch, only
from tests.coordinator.core.fetch.test_synthetic import batches
from tests.coordinator.core.groups.consumer_node import ORDERS, ConsumerNode
from tests.coordinator.core.groups.test_consumer_writes import heartbeat


class Reader:
    """Reads the fields of a key or value one by one, as Kafka's definitions have them."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from(">" + code, self.data)
        self.data = self.data[struct.calcsize(code) :]
        return int(value)

    def some(self, code: str) -> bytes | None:
        length = self.number(code)
        if length < 0:
            return None
        value, self.data = self.data[:length], self.data[length:]
        return value

    def text(self) -> str | None:
        value = self.some("h")
        return None if value is None else value.decode()


class Offset(NamedTuple):
    """An offset commit as it stands in the log."""

    group: str | None
    topic: str | None
    partition: int
    offset: int | None


def read_key(data: bytes) -> tuple[int, Any]:
    reader = Reader(data)
    version = reader.number("h")
    if version == 2:
        return version, reader.text()
    found = version, (reader.text(), reader.text(), reader.number("i"))
    assert reader.data == b""
    return found


class Commit(NamedTuple):
    """The value of an offset commit."""

    version: int
    offset: int
    leader_epoch: int
    metadata: str | None
    at: int
    topic_id: str


def read_commit(value: bytes) -> Commit:
    reader = Reader(value)
    version, offset, epoch = (reader.number(code) for code in "hqi")
    if version < 4:
        text, at, topic_id = reader.text(), reader.number("q"), ZERO_UUID
    else:
        length = reader.number("B") - 1
        text, reader.data = reader.data[:length].decode(), reader.data[length:]
        at = reader.number("q")
        tagged = [reader.number("B") for _ in range(3)]
        assert tagged == [1, 0, 16], "one tagged field, the first, of 16 bytes"
        topic_id, reader.data = uuid_text(reader.data[:16]), reader.data[16:]
    assert reader.data == b""
    return Commit(version, offset, epoch, text, at, topic_id)


def read_group(value: bytes) -> dict[str, Any]:
    reader = Reader(value)
    assert reader.number("h") == 3
    group: dict[str, Any] = {"type": reader.text(), "generation": reader.number("i")}
    group |= {"protocol": reader.text(), "leader": reader.text(), "since": reader.number("q")}
    group["members"] = [
        {
            "member": reader.text(),
            "instance": reader.text(),
            "client": reader.text(),
            "host": reader.text(),
            "timeouts": (reader.number("i"), reader.number("i")),
            "subscription": reader.some("i"),
            "assignment": reader.some("i"),
        }
        for _ in range(reader.number("i"))
    ]
    assert reader.data == b""
    return group


def log(driven: DrivenNode, offset: int = 0, **given: Any) -> list[bytes]:
    """The batches of offsets partition 0."""
    found = only(driven.ask(fetch(offset, name=OFFSETS_TOPIC, max_wait_ms=0, **given), 12))
    assert found.error_code is ErrorCode.NONE
    return batches(bytes(found.records or b""))


def offsets(data: list[bytes]) -> dict[int, Offset]:
    """The commits in some batches, by the offsets of their records."""
    found = {}
    for batch in data:
        header = parse_header(batch)
        assert header.crc == crc_of(batch)
        for record in () if header.is_control else read_batch(batch):
            assert record.key is not None
            version, key = read_key(record.key)
            if version == 1:
                at = None if record.value is None else read_commit(record.value).offset
                found[header.base_offset + record.offset_delta] = Offset(key[0], key[1], key[2], at)
    return found


def committed(driven: DrivenNode, offset: int, partition: int = 0, group: str = GROUP) -> None:
    """Commit an offset of ``t``."""
    wanted = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="m")
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(wanted,)),)
    answer = driven.ask(OffsetCommitRequest(group_id=group, member_id="", topics=topics), 9)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def test_a_commit_is_written_as_kafka_4_4_does() -> None:
    """The value of a commit by name, in version 5, as a real broker has written it."""
    written = OffsetCommitValue(
        offset=5, metadata="m", commit_timestamp=0x01A219C8155C, topic_id="ZL_2ZyEAR56kOQ6yKc8Htg"
    )
    assert value_bytes(offset_record("g", "t", 0, written)) == bytes.fromhex(
        "00040000000000000005ffffffff026d000001a219c8155c01001064bff6672100479ea4390eb229cf07b6"
    )


def id_of_topic(driven: DrivenNode) -> str:
    return next(view.topic_id for view in driven.node.describe_topics(driven.now) if view.topic == TOPIC)


@pytest.mark.parametrize(("release", "version"), [("", 4), ("4.1", 4), ("4.0", 3), ("2.8", 3)])
def test_commits_are_read_in_kafkas_binary_format(release: str, version: int) -> None:
    driven = DrivenNode(emulator_as_kafka=release)
    committed(driven, 5)
    (batch,) = log(driven)
    header = parse_header(batch)
    assert (header.base_offset, header.records_count, header.producer_id, header.attributes) == (0, 1, -1, 0)
    (record,) = read_batch(batch)
    assert record.key is not None
    assert record.value is not None
    assert read_key(record.key) == (1, (GROUP, TOPIC, 0))
    topic_id = id_of_topic(driven) if version == 4 else ZERO_UUID
    assert read_commit(record.value) == (version, 5, -1, "m", START, topic_id)


def test_commits_by_id_and_in_transactions_have_the_topic_id_as_well() -> None:
    driven = DrivenNode()
    topic_id = id_of_topic(driven)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")
    by_id = OffsetCommitRequestTopic(topic_id=topic_id, partitions=(partition,))
    driven.ask(OffsetCommitRequest(group_id=GROUP, member_id="", topics=(by_id,)), 10)
    of_producer = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=6, committed_metadata="m")
    in_transaction = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=GROUP,
        producer_id=7,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(of_producer,)),),
    )
    driven.ask(in_transaction, 3)
    values = [record.value for batch in log(driven) for record in read_batch(batch)]
    assert [(found.offset, found.topic_id) for found in map(read_commit, filter(None, values))] == [
        (5, topic_id),
        (6, topic_id),
    ]


def test_an_offset_that_is_older_than_topic_ids_is_read_as_it_was_stored() -> None:
    older = DrivenNode(emulator_as_kafka="4.0")
    committed(older, 5)
    driven = DrivenNode(leads=False)
    driven.log.extend(older.log)
    driven.elect()
    assert first_read(driven) == live_records(older)
    committed(driven, 6)
    assert [read_commit(value or b"")[:2] for _, value in live_records(driven)] == [(4, 6)]


def test_a_group_is_read_in_kafkas_binary_format() -> None:
    driven = DrivenNode()
    log(driven)
    member = driven.joins(join(group_instance_id="i-1"))
    driven.elapse(3_000)
    (batch, *_) = log(driven)
    (record,) = read_batch(batch)
    assert record.key is not None
    assert record.value is not None
    assert read_key(record.key) == (2, GROUP)
    first = read_group(record.value)
    assert (first["type"], first["generation"], first["members"]) == ("", 0, [])
    from_state = DrivenNode()
    from_state.joins(join(group_instance_id="i-1"))
    from_state.elapse(3_000)
    ((record,),) = [read_batch(each) for each in log(from_state)]
    assert record.value is not None
    found = read_group(record.value)
    assert (found["type"], found["generation"], found["protocol"], found["leader"]) == ("consumer", 1, "range", member)
    (only_member,) = found["members"]
    assert (only_member["member"], only_member["instance"]) == (member, "i-1")
    assert (only_member["client"], only_member["host"]) == ("client", "/127.0.0.1")
    assert only_member["timeouts"] == (60_000, 10_000)


def test_a_log_that_was_never_read_begins_with_what_is_there() -> None:
    driven = DrivenNode()
    for offset in range(1, 6):
        committed(driven, offset)
        driven.elapse(10)
    committed(driven, 9, group="other")
    assert offsets(log(driven)) == {4: Offset(GROUP, TOPIC, 0, 5), 5: Offset("other", TOPIC, 0, 9)}
    committed(driven, 6)
    assert offsets(log(driven, 6)) == {6: Offset(GROUP, TOPIC, 0, 6)}
    found = only(driven.ask(fetch(7, name=OFFSETS_TOPIC, max_wait_ms=0), 12))
    assert (found.log_start_offset, found.high_watermark, found.records) == (0, 7, b"")
    refused = only(driven.ask(fetch(8, name=OFFSETS_TOPIC, max_wait_ms=0), 12))
    assert refused.error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def live_records(driven: DrivenNode) -> list[tuple[bytes, bytes | None]]:
    """What is left of the log of partition 0 after compaction, in Kafka's binary format."""
    left = [record for record in compacted(driven.logs.of(PARTITION).records) if isinstance(record, KeyedRecord)]
    return sorted((key_bytes(record), value_bytes(record)) for record in left)


def first_read(driven: DrivenNode) -> list[tuple[bytes, bytes | None]]:
    """The records of partition 0 for a consumer that is the first to read it since it was elected."""
    found = [record for batch in log(driven) for record in read_batch(batch)]
    return sorted((record.key or b"", record.value) for record in found)


def key_types(records: list[tuple[bytes, bytes | None]]) -> set[int]:
    return {int.from_bytes(key[:2], "big") for key, _ in records}


CONSUMER_GROUP_KEYS: Final = {3, 5, 6, 7, 8, 16}


def test_a_consumer_group_is_read_as_it_is_in_the_log() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0, subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    node.heartbeat("static", 0, instance_id="i")
    records = first_read(node)
    assert records == live_records(node)
    assert key_types(records) == CONSUMER_GROUP_KEYS


def test_a_consumer_group_is_read_in_the_middle_of_a_reconciliation() -> None:
    node = ConsumerNode()
    epoch = node.heartbeat("a", 0).member_epoch
    node.heartbeat("b", 0)
    node.heartbeat("a", epoch, 0, 1, 2, 3)
    states = {member.current.state.name for member in node.shard().kinds.consumer.group(GROUP).members.values()}
    assert states == {"UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS"}
    assert first_read(node) == live_records(node)


def test_what_is_in_flight_of_a_consumer_group_comes_when_it_is_stored() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.logs.defers_appends = True
    node.send(heartbeat("b"), 1)
    before = live_records(node)
    assert first_read(node) == before
    node.logs.end_append()
    last = {record.key: record.value for batch in log(node) for record in read_batch(batch)}
    assert sorted((key or b"", value) for key, value in last.items()) == live_records(node)
    assert live_records(node) != before


def test_a_classic_group_whose_upgrade_is_in_flight_is_read_as_a_classic_one() -> None:
    node = ConsumerNode(group_consumer_migration_policy="bidirectional")
    node.classic_members(1, (b"",), encode_subscription(Subscription((ORDERS,))))
    node.logs.defers_appends = True
    node.send(heartbeat("b"), 1)
    assert key_types(first_read(node)) == {2}
    node.logs.end_append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert key_types(first_read(node)) == {2}


def test_a_reader_waits_for_the_next_commit() -> None:
    driven = DrivenNode()
    committed(driven, 1)
    waits = driven.send(fetch(1, name=OFFSETS_TOPIC), 12)
    driven.logs.defers_appends = True
    driven.send(commit(), 9)
    assert waits not in driven.replies
    driven.logs.end_append()
    assert offsets(batches(bytes(only(driven.replies[waits]).records or b""))) == {1: Offset(GROUP, TOPIC, 0, 5)}


def test_deleted_offsets_are_tombstones() -> None:
    driven = DrivenNode()
    committed(driven, 1)
    log(driven)
    gone = OffsetDeleteRequestTopic(name=TOPIC, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    driven.ask(OffsetDeleteRequest(group_id=GROUP, topics=(gone,)), 0)
    assert offsets(log(driven)) == {0: Offset(GROUP, TOPIC, 0, 1), 1: Offset(GROUP, TOPIC, 0, None)}


def test_what_is_kept_of_a_log_is_compacted() -> None:
    driven = DrivenNode()
    log(driven)
    driven.elapse(1)
    size = 0
    for offset in range(2 * LEAST_TO_COMPACT // 120):
        committed(driven, offset)
        size = max(size, driven.node._fetches._logs._offsets_topic.log(0)[1].size)  # type: ignore[index]
    assert size <= 1.01 * LEAST_TO_COMPACT
    last = log(driven, partition_max_bytes=100 * MEBIBYTE, max_bytes=100 * MEBIBYTE)
    found = offsets(last)
    assert len(found) < 2 * LEAST_TO_COMPACT // 120
    assert all(at == commit.offset for at, commit in found.items()), "records keep their offsets"


def test_a_node_that_leads_anew_says_so_by_its_epoch() -> None:
    driven = DrivenNode()
    for offset in range(5):
        committed(driven, offset)
    waits = driven.send(fetch(5, name=OFFSETS_TOPIC), 12)
    driven.resign()
    assert only(driven.replies[waits]).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    driven.elect()
    (batch,) = log(driven)
    assert parse_header(batch).partition_leader_epoch == 1
    diverged = only(driven.ask(fetch(5, name=OFFSETS_TOPIC, last_fetched_epoch=0), 12))
    assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (0, 0)


def test_metadata_shows_the_topic_to_those_who_ask_for_it() -> None:
    driven = DrivenNode()
    for wanted in (
        MetadataRequestTopic(name=OFFSETS_TOPIC, topic_id=ZERO_UUID),
        MetadataRequestTopic(name=None, topic_id=OFFSETS_TOPIC_ID),
    ):
        (found,) = driven.ask(
            MetadataRequest(
                topics=(wanted,), allow_auto_topic_creation=True, include_topic_authorized_operations=False
            ),
            12,
        ).topics
        assert (found.name, found.topic_id, found.is_internal) == (OFFSETS_TOPIC, OFFSETS_TOPIC_ID, True)
        ((index, leader, epoch),) = [(p.partition_index, p.leader_id, p.leader_epoch) for p in found.partitions]
        assert (index, leader, epoch) == (0, 1, 0)
    response = driven.ask(fetch(topic_id=OFFSETS_TOPIC_ID, max_wait_ms=0), 17)
    assert isinstance(response, FetchResponse)
    assert only(response).error_code is ErrorCode.NONE


def test_consumers_of_the_topic_commit_their_own_offsets() -> None:
    driven = DrivenNode()
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name=OFFSETS_TOPIC, partitions=(wanted,)),)
    answer = driven.ask(OffsetCommitRequest(group_id="burrow", member_id="", topics=topics), 9)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE
    (view,) = driven.node.describe_offsets("burrow", driven.now)
    assert (view.topic, view.offset, view.log_end_offset) == (OFFSETS_TOPIC, 1, None)


def test_the_ends_of_the_topic_are_looked_up_like_others() -> None:
    driven = DrivenNode()
    committed(driven, 1)
    driven.elapse(1_000)
    committed(driven, 2)

    def look_up(timestamp: int) -> tuple[int, int, int]:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = (ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=(wanted,)),)
        ((found,),) = (
            each.partitions for each in driven.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 1).topics
        )
        assert found.error_code is ErrorCode.NONE
        return found.offset, found.timestamp, found.leader_epoch

    assert look_up(-1)[0] == 2
    assert look_up(-2)[0] == 0
    assert look_up(START + 1) == (1, START + 1_000, 0)
    assert look_up(START + 1_001)[0] == -1
    epoch = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    asked = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=OFFSETS_TOPIC, partitions=(epoch,)),))
    assert driven.ask(asked, 4).topics[0].partitions[0].end_offset == 2
