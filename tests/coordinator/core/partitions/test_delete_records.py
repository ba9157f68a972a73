"""DeleteRecords: where a log begins afterwards, and what is refused."""

from __future__ import annotations

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.coordinator.core.driver import TOPIC, DrivenNode
from tests.coordinator.core.partitions.real_topic import RealTopic, batch


def request_of(offset: int, topic: str = TOPIC) -> DeleteRecordsRequest:
    partitions = (DeleteRecordsPartition(partition_index=0, offset=offset),)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=1_000)


def delete(driven: DrivenNode, offset: int, topic: str = TOPIC) -> DeleteRecordsPartitionResult:
    response = driven.ask(request_of(offset, topic), 2)
    result = response.topics[0].partitions[0]
    assert isinstance(result, DeleteRecordsPartitionResult)
    return result


def with_five_records() -> RealTopic:
    driven = RealTopic()
    driven.produce(batch("a", "b"))
    driven.produce(batch("c", "d", "e"))
    return driven


def test_a_log_begins_in_the_middle_of_a_batch_which_stays_whole() -> None:
    driven = with_five_records()
    assert delete(driven, 3).low_watermark == 3
    log = driven.partition().log
    assert (log.log_start_offset, [each.base_offset for each in log.batches]) == (3, [2])


def test_minus_one_means_everything() -> None:
    driven = with_five_records()
    assert delete(driven, -1).low_watermark == 5
    assert driven.produce(batch("f")).base_offset == 5


def test_a_log_never_begins_earlier_than_before() -> None:
    driven = with_five_records()
    delete(driven, 3)
    assert delete(driven, 1).low_watermark == 3


def test_the_beginning_outlives_the_leader() -> None:
    driven = with_five_records()
    delete(driven, -1)
    driven.elect()
    log = driven.partition().log
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (5, 5, 5)


def test_it_is_answered_when_the_beginning_is_stored() -> None:
    driven = with_five_records()
    driven.logs.defers_appends = True
    number = driven.send(request_of(2), 2)
    assert number not in driven.replies
    driven.logs.end_append()
    assert driven.replies[number].topics[0].partitions[0].low_watermark == 2  # type: ignore[attr-defined]


def test_it_waits_no_longer_than_it_may() -> None:
    driven = with_five_records()
    driven.logs.defers_appends = True
    number = driven.send(request_of(2), 2)
    driven.elapse(1_000)
    result = driven.replies[number].topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    driven.logs.end_append()
    assert driven.partition().log.log_start_offset == 2


def test_what_is_refused() -> None:
    driven = with_five_records()
    assert delete(driven, 6).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(driven, -2).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(driven, 0, "nowhere").error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(driven, 0, "__consumer_offsets").error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    driven.configure(cleanup_policy=("compact",))
    assert delete(driven, 1).error_code is ErrorCode.POLICY_VIOLATION
    assert delete(DrivenNode(emulator_records_per_second=0.0), 0).error_code is ErrorCode.POLICY_VIOLATION


def test_producers_go_on_as_if_nothing_were_deleted() -> None:
    driven = RealTopic()
    data = batch("a", producer_id=7, producer_epoch=0, base_sequence=0)
    driven.produce(data)
    delete(driven, -1)
    assert driven.produce(data).base_offset == 0
    assert driven.produce(batch("b", producer_id=7, producer_epoch=0, base_sequence=1)).base_offset == 1
