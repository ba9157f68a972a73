"""What becomes of transactional ids: their epochs run out, transactions time out, ids expire, nodes restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rejoin.coordinator.core.inputs import Broker, ClusterSeen, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import concurrent_hash_map_order
from rejoin.protocol.messages.records.produce import ProduceResponse
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import read_batch
from rejoin.protocol.wire.state_topics.transaction_state import read_key
from tests.coordinator.core.driver import PARTITION, TOPIC, DrivenNode
from tests.coordinator.core.transactions.producer import Producer, fetch, markers, node

LAST_EPOCH = 32_766


def exhausted(driven: DrivenNode) -> Producer:
    """A producer with the last epoch of its id."""
    producer = Producer(driven)
    assert producer.init() is ErrorCode.NONE
    (shard,) = driven.node._requests.transactions.coordinator.shards.values()
    shard.transactions[producer.transactional_id].producer_epoch = LAST_EPOCH
    producer.use(producer.producer_id, LAST_EPOCH)
    return producer


def restart(driven: DrivenNode) -> None:
    """Begin again with the logs and the topics."""
    records = driven.node.topics_records()
    driven.node = Node(driven.node.settings, driven._new_id)
    driven.see_cluster()
    driven.step(TopicsChanged(((1, records),), 1))
    driven.elect()


def test_the_end_of_the_last_epoch_brings_a_new_producer_id() -> None:
    driven = node()
    producer = exhausted(driven)
    before = producer.producer_id
    assert producer.produce() is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    assert (producer.producer_id != before, producer.epoch) == (True, 0)
    assert markers(bytes(fetch(driven).records)) == [(before, LAST_EPOCH + 1)]
    after = producer.producer_id
    producer.use(before, LAST_EPOCH)
    assert producer.end() is ErrorCode.NONE
    assert (producer.producer_id, producer.epoch) == (after, 0)


def test_a_fenced_last_epoch_brings_a_new_producer_id_as_well() -> None:
    driven = node()
    producer, other = exhausted(driven), Producer(driven)
    assert producer.produce() is ErrorCode.NONE
    assert other.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    driven.elapse(50)
    assert (producer.described().transaction_state, producer.described().producer_epoch) == ("CompleteAbort", 0)
    assert other.init() is ErrorCode.NONE
    assert (other.producer_id != producer.producer_id, other.epoch) == (True, 1)


@pytest.mark.parametrize(("level", "goes_on"), [(2, ErrorCode.NONE), (1, ErrorCode.PRODUCER_FENCED)])
def test_a_transaction_that_takes_too_long_is_aborted(level: int, goes_on: ErrorCode) -> None:
    driven = node(emulator_transaction_version=level)
    producer = Producer(driven, timeout_ms=5_000)
    producer.init()
    assert producer.produce() is ErrorCode.NONE
    assert fetch(driven).last_stable_offset == 0
    driven.elapse(20_100)
    assert producer.described().transaction_state == "CompleteAbort"
    read = fetch(driven)
    assert (read.last_stable_offset, [each.first_offset for each in read.aborted_transactions]) == (2, [0])
    assert producer.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.init(again=True) is goes_on


def test_an_id_that_is_not_used_is_forgotten() -> None:
    driven = node(
        transactional_id_expiration_ms=10_000, transaction_remove_expired_transaction_cleanup_interval_ms=1_000
    )
    producer = Producer(driven)
    producer.init()
    driven.elapse(12_000)
    assert producer.described().error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert producer.produce() is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    before = producer.producer_id
    assert producer.init(again=True) is ErrorCode.NONE
    assert (producer.producer_id != before, producer.epoch) == (True, 0)


@pytest.mark.parametrize(("most_bytes", "batches"), [(1_048_588, [4]), (61 + 2 * 20, [2, 2]), (61, [1, 1, 1, 1])])
def test_ids_that_expire_together_have_their_tombstones_in_one_batch(most_bytes: int, batches: list[int]) -> None:
    driven = node(
        transactional_id_expiration_ms=10_000, transaction_remove_expired_transaction_cleanup_interval_ms=1_000
    )
    names = ["one", "another", "third", "last"]
    for name in names:
        assert Producer(driven, name).init() is ErrorCode.NONE
    (shard,) = driven.node._requests.transactions.coordinator.shards.values()
    log = shard._partition
    log.config = replace(log.config, max_message_bytes=most_bytes)
    before = len(log.log.batches)
    driven.elapse(12_000)
    tombstones = [read_batch(each.data) for each in log.log.batches[before:]]
    assert [len(records) for records in tombstones] == batches
    assert [record.value for records in tombstones for record in records] == [None] * 4
    assert all([record.offset_delta for record in records] == list(range(len(records))) for records in tombstones)
    ids = [read_key(record.key or b"") for records in tombstones for record in records]
    assert ids == concurrent_hash_map_order(names)


def test_markers_are_written_after_a_restart() -> None:
    driven = node(emulator_transaction_marker_delay_ms=1_000)
    producer = Producer(driven)
    producer.init()
    producer.produce()
    assert producer.end() is ErrorCode.NONE
    assert producer.described().transaction_state == "PrepareCommit"
    restart(driven)
    assert producer.described().transaction_state == "CompleteCommit"
    assert fetch(driven).last_stable_offset == 2
    assert producer.produce() is ErrorCode.NONE


def test_a_node_that_takes_over_knows_which_transactions_have_ended() -> None:
    driven = node()
    producer = Producer(driven)
    producer.init()
    producer.produce()
    producer.end(commits=False)
    brokers = tuple(Broker(number, f"node-{number}", 9_000 + number) for number in (1, 2))
    driven.step(ClusterSeen(brokers, {PARTITION: 1}))
    driven.elect()
    read = fetch(driven)
    assert (read.last_stable_offset, [each.first_offset for each in read.aborted_transactions]) == (2, [0])


def test_compaction_keeps_what_was_committed() -> None:
    driven = node(log_cleaner_backoff_ms=1_000)
    topic_id = driven.node._topics.by_name[TOPIC].topic_id
    driven.node._partitions.configure(topic_id, TopicConfig(cleanup_policy=("compact",)))
    producer = Producer(driven)
    producer.init()
    for value, commits in ((b"old", True), (b"newest", True), (b"aborted", False), (b"last", True)):
        producer.produce(value=value, key=b"other" if value == b"last" else b"key")
        assert producer.end(commits=commits) is ErrorCode.NONE
    producer.produce(value=b"open", key=b"key")
    driven.elapse(2_000)
    data, at, values = bytes(fetch(driven).records), 0, []
    while at < len(data):
        header = parse_header(data, at)
        if not header.is_control:
            values += [record.value for record in read_batch(data[at : at + header.size])]
        at += header.size
    assert values == [b"newest", b"last"]


def test_a_marker_of_which_compaction_left_nothing_is_read_again() -> None:
    driven = node(log_cleaner_backoff_ms=1_000)
    topic_id = driven.node._topics.by_name[TOPIC].topic_id
    config = TopicConfig(cleanup_policy=("compact",), delete_retention_ms=2_000, min_cleanable_dirty_ratio=0.0)
    driven.node._partitions.configure(topic_id, config)
    aborting, other = Producer(driven), Producer(driven, "other")
    for producer in (aborting, other):
        producer.init()
    aborting.produce(key=b"key")
    assert aborting.end(commits=False) is ErrorCode.NONE
    for _ in range(4):
        other.produce(key=b"other")
        assert other.end() is ErrorCode.NONE
        driven.elapse(3_000)
    first = parse_header(bytes(fetch(driven).records))
    assert (first.base_offset, first.is_control, first.records_count) == (1, True, 0)
    driven.elect()
    again = fetch(driven)
    assert parse_header(bytes(again.records)) == first
    assert again.last_stable_offset == again.high_watermark


def test_an_open_transaction_goes_on_after_a_restart() -> None:
    driven = node()
    producer = Producer(driven)
    producer.init()
    producer.produce()
    restart(driven)
    assert producer.described().transaction_state == "Ongoing"
    assert producer.produce() is ErrorCode.NONE
    assert fetch(driven).last_stable_offset == 0
    assert producer.end(commits=False) is ErrorCode.NONE
    assert [each.first_offset for each in fetch(driven).aborted_transactions] == [0]


def test_a_batch_waits_while_the_transaction_before_ends() -> None:
    driven = node(emulator_transaction_marker_delay_ms=50)
    producer = Producer(driven)
    producer.init()
    producer.produce()
    producer.end()
    assert producer.produce() is None
    driven.elapse(49)
    assert producer.described().transaction_state == "PrepareCommit"
    # Not 10 ms later, when it would ask again by itself.
    driven.elapse(1)
    assert producer.described().transaction_state == "Ongoing"
    driven.elapse(100)
    assert _produced(driven) == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_batch_waits_no_longer_than_it_may() -> None:
    driven = node(emulator_transaction_marker_delay_ms=500)
    producer = Producer(driven)
    producer.init()
    producer.produce()
    producer.end()
    assert producer.produce() is None
    driven.elapse(99)
    assert len(_produced(driven)) == 1
    driven.elapse(1)
    assert _produced(driven) == [ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS]
    driven.elapse(400)
    assert producer.described().transaction_state == "CompleteCommit"
    assert producer.produce() is ErrorCode.NONE


def _produced(driven: DrivenNode) -> list[ErrorCode]:
    """The error of each Produce that is answered."""
    answers = [each for each in driven.replies.values() if isinstance(each, ProduceResponse)]
    return [each.responses[0].partition_responses[0].error_code for each in answers]


def test_version_0_knows_no_epochs_of_transactions() -> None:
    producer = Producer(node(emulator_transaction_version=0))
    producer.init()
    assert producer.produce() is ErrorCode.UNSUPPORTED_VERSION
    producer.add()
    assert producer.produce(version=11) is ErrorCode.NONE
    assert producer.end() is ErrorCode.UNSUPPORTED_VERSION
    assert producer.end(version=4) is ErrorCode.NONE
    assert (producer.described().transaction_state, producer.described().producer_epoch) == ("CompleteCommit", 0)


def test_without_verification_a_batch_can_hang() -> None:
    """A partition that no coordinator knows of: its transaction is never ended, and readers stand still."""
    driven = node(emulator_transaction_version=1, transaction_partition_verification_enable=False)
    producer = Producer(driven)
    producer.init()
    assert producer.produce(version=11) is ErrorCode.NONE
    assert producer.end(version=4) is ErrorCode.INVALID_TXN_STATE
    driven.elapse(3_600_000)
    assert fetch(driven).last_stable_offset == 0
