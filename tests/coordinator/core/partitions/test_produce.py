"""Produce: when it is answered, and what is refused that no recording has."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.wire.compression import CompressionType, compress
from rejoin.protocol.wire.record_batch import MAGIC, BatchHeader, crc_of, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode, commit
from tests.coordinator.core.partitions.real_topic import PRODUCE_VERSION, RealTopic, batch


def test_a_batch_is_answered_when_it_is_stored() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    for acks in (1, -1):
        number = driven.send_batch(batch("a"), acks=acks)
        assert number not in driven.replies
        driven.logs.end_append()
        assert driven.answer_to(number).error_code is ErrorCode.NONE


def test_acks_0_is_answered_at_once() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    assert driven.produce(batch("a"), acks=0).error_code is ErrorCode.NONE


def test_what_is_not_stored_in_time_is_in_the_log_all_the_same() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    number = driven.send_batch(batch("a"), timeout_ms=500)
    driven.elapse(499)
    assert number not in driven.replies
    driven.elapse(1)
    answer = driven.answer_to(number)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0, 0)
    driven.logs.end_append()
    assert driven.partition().log.high_watermark == 1


def test_a_timer_is_left_only_while_a_request_waits() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    driven.send_batch(batch("a"))
    assert "produce_timeout" in {view.timer for view in driven.node.timers()}
    driven.logs.end_append()
    assert "produce_timeout" not in {view.timer for view in driven.node.timers()}


def test_a_repeated_batch_waits_for_the_first_to_be_stored() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    data = batch("a", producer_id=7, producer_epoch=0, base_sequence=0)
    first, second = driven.send_batch(data), driven.send_batch(data)
    assert second not in driven.replies
    driven.logs.end_append()
    assert (driven.answer_to(first).base_offset, driven.answer_to(second).base_offset) == (0, 0)
    assert driven.partition().log.end_offset == 1


def test_what_cannot_be_stored_is_not_in_the_log() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    numbers = [driven.send_batch(batch("a")), driven.send_batch(batch("b"))]
    driven.logs.end_append(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [driven.answer_to(number).error_code for number in numbers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    driven.logs.defers_appends = False
    assert driven.produce(batch("c")).base_offset == 0


def test_a_node_that_no_longer_leads_names_the_leader() -> None:
    driven = RealTopic()
    driven.logs.defers_appends = True
    number = driven.send_batch(batch("a"))
    driven.resign()
    assert driven.answer_to(number).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = driven.produce(batch("b"))
    assert (answer.error_code, answer.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)


def test_of_a_partition_that_is_named_twice_the_last_batch_counts() -> None:
    driven = RealTopic()
    partitions = (
        PartitionProduceData(index=0, records=batch("lost", "too")),
        PartitionProduceData(index=0, records=batch("kept")),
    )
    topic = TopicProduceData(name=TOPIC, partition_data=partitions)
    response = driven.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,)), PRODUCE_VERSION)
    assert len(response.responses[0].partition_responses) == 1
    assert driven.partition().log.end_offset == 1


def test_null_records_are_refused() -> None:
    answer = RealTopic().produce(None)
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.INVALID_RECORD, -1)


def test_a_synthetic_log_takes_no_records() -> None:
    driven = DrivenNode(emulator_records_per_second=0.0)
    topic = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=batch("a")),))
    response = driven.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,)), PRODUCE_VERSION)
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_unknown_acks_are_refused() -> None:
    assert RealTopic().produce(batch("a"), acks=2).error_code is ErrorCode.INVALID_REQUIRED_ACKS


def test_more_replicas_than_there_are_need_not_be_in_sync() -> None:
    driven = RealTopic()
    driven.configure(min_insync_replicas=2)
    assert driven.produce(batch("a"), acks=-1).error_code is ErrorCode.NONE


def test_a_compacted_topic_names_every_record_without_a_key() -> None:
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",))
    answer = driven.produce(batch("a", "b"))
    assert answer.error_code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert driven.produce(batch("a", keys=("k",))).error_code is ErrorCode.NONE


def test_a_wrong_newest_timestamp_is_corrected() -> None:
    driven = RealTopic()
    driven.produce(batch("a", "b", max_timestamp=5))
    (stored,) = driven.stored_headers()
    assert stored.max_timestamp == 1_700_000_000_001
    assert stored.crc == crc_of(driven.partition().log.batches[0].data)


def test_a_batch_with_a_number_of_records_that_cannot_be_is_refused() -> None:
    driven = RealTopic()
    boastful = batch("a", records_count=2**31 - 1, last_offset_delta=2**31 - 2)
    assert driven.produce(boastful).error_code is ErrorCode.INVALID_RECORD


def test_every_record_of_a_large_batch_is_looked_at() -> None:
    driven = RealTopic()
    records = [DefaultRecord(number, 0, None, b"value") for number in range(100)]
    data = bytearray(write_records(records))
    header = BatchHeader(0, 0, -1, MAGIC, 0, 0, 99, 0, 0, -1, -1, -1, 100)
    assert driven.produce(sealed(header, bytes(data))).error_code is ErrorCode.NONE
    data[data.rindex(b"\nvalue")] = 77  # the length of the last value
    assert driven.produce(sealed(header, bytes(data))).error_code is ErrorCode.INVALID_RECORD
    packed = header.with_fields(attributes=CompressionType.GZIP)
    assert driven.produce(sealed(packed, bytes(compress(1, bytes(data))))).error_code is ErrorCode.INVALID_RECORD


def test_any_negative_length_is_that_of_null() -> None:
    driven = RealTopic()
    # Kafka: Utils.readBytes. The lengths of key and value are -2 and -5.
    body = b"\x00\x00\x00\x03\x09\x00"
    header = BatchHeader(0, 0, -1, MAGIC, 0, 0, 0, driven.now, driven.now, -1, -1, -1, 1)
    record = bytes((2 * len(body),)) + body
    assert driven.produce(sealed(header, record)).error_code is ErrorCode.NONE
    packed = header.with_fields(attributes=CompressionType.GZIP)
    assert driven.produce(sealed(packed, bytes(compress(1, record)))).error_code is ErrorCode.NONE
    driven.configure(cleanup_policy=("compact",))
    refused = driven.produce(sealed(header, record))
    assert (refused.error_code, len(refused.record_errors)) == (ErrorCode.INVALID_RECORD, 1)


def test_one_record_of_a_large_batch_that_is_too_new() -> None:
    driven = RealTopic()
    hours = [DefaultRecord(number, 7_200_000 * (number == 90), None, b"value") for number in range(100)]
    header = BatchHeader(0, 0, -1, MAGIC, 0, 0, 99, driven.now, driven.now, -1, -1, -1, 100)
    answer = driven.produce(sealed(header, write_records(hours)))
    assert answer.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [90]


def test_more_than_one_batch_is_refused_and_a_cut_one_behind_it_is_not() -> None:
    driven = RealTopic()
    assert driven.produce(batch("a") + batch("b")).error_code is ErrorCode.INVALID_RECORD
    assert driven.produce(batch("a") + batch("b")[:30]).error_code is ErrorCode.NONE
    assert len(driven.partition().log.batches[0].data) == len(batch("a"))


def test_a_batch_larger_than_a_segment() -> None:
    driven = RealTopic()
    driven.configure(segment_bytes=64)
    answer = driven.produce(batch("a"))
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.RECORD_LIST_TOO_LARGE, -1)


def test_a_bug_costs_one_partition_its_memory_and_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = RealTopic()
    driven.produce(batch("a"))

    def broken(*_: object) -> None:
        raise AssertionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "when_stored", broken)
        number = driven.send_batch(batch("b"))
    assert driven.answer_to(number).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    (failed,) = driven.emitted(CoreFailed)
    assert (failed.topic, failed.partition, failed.doing) == (TOPIC, 0, "Produce")
    # What was on its way to the log when it failed may be there.
    assert driven.produce(batch("c")).base_offset in (1, 2)


def test_the_lag_of_a_group_is_that_to_the_high_watermark() -> None:
    driven = RealTopic()
    driven.produce(batch("a", "b", "c"))
    driven.ask(commit(), 9)
    (view,) = driven.node.describe_offsets(GROUP, driven.now)
    assert (view.log_end_offset, view.lag) == (3, 3 - view.offset)


def test_the_lag_of_a_group_in_time_is_the_age_of_the_next_batch() -> None:
    driven = RealTopic()
    driven.produce(batch(*"abcdefg"))
    driven.ask(commit(), 9)
    (view,) = driven.node.describe_offsets(GROUP, driven.now + 10_000)
    (later,) = driven.node.describe_offsets(GROUP, driven.now + 15_000)
    assert view.lag_ms is not None
    assert view.lag_ms > 9_000
    assert later.lag_ms == view.lag_ms + 5_000
