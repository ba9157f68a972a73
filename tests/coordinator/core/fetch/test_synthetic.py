"""Synthetic logs as consumers of records see them: the same bytes at whatever time, times as in look-ups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.core.fetch.synthetic import BatchCache, SyntheticBatches
from rejoin.coordinator.core.inputs import RecordsWritten
from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
from rejoin.coordinator.core.topics.table import Topic
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.wire.record_batch import crc_of, parse_header, size_at
from rejoin.protocol.wire.records import read_batch
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import DrivenNode, topic
from tests.coordinator.core.fetch.test_fetch import MEBIBYTE, fetch, only
from tests.coordinator.core.topics.test_topics import create, rated


def log_of(rate: float = 10.0, base_offset: int = 0) -> Topic:
    return Topic("orders", "id", rate, [SyntheticLog(START, base_offset)])


def batches(data: bytes) -> list[bytes]:
    found = []
    while data:
        found.append(data[: size_at(data)])
        data = data[size_at(data) :]
    return found


def read(topic: Topic, now: int, offset: int = 0, cache: BatchCache | None = None) -> bytes:
    log = SyntheticBatches(topic, 0, now, cache or BatchCache())
    return bytes(log.read(offset, 100 * MEBIBYTE, log.high_watermark, at_least_one=True))


def test_records_are_those_of_the_project_s_own_consumers() -> None:
    (batch,) = batches(read(log_of(), START + 500))
    header = parse_header(batch)
    assert (header.base_offset, header.records_count, header.last_offset_delta) == (0, 5, 4)
    assert header.crc == crc_of(batch)
    assert [(record.key, record.value) for record in read_batch(batch)][4] == (b"key-4", b"orders-0@4")
    assert [header.base_timestamp + record.timestamp_delta for record in read_batch(batch)] == [
        START + 100 * offset for offset in range(5)
    ]


def test_batches_have_fixed_borders_and_do_not_change() -> None:
    later = batches(read(log_of(), START + 60_000))
    assert [parse_header(batch).base_offset for batch in later] == [0, 100, 200, 300, 400, 500]
    (first, second) = batches(read(log_of(), START + 15_000))
    assert (first, parse_header(second).records_count) == (later[0], 50)
    assert batches(read(log_of(), START + 60_000, offset=250)) == later[2:]


def test_what_is_kept_of_batches_is_bounded() -> None:
    cache = BatchCache(limit=10_000)
    orders = log_of(1_000.0)
    data = read(orders, START + 60_000, cache=cache)
    assert len(data) > 1_000_000
    assert cache._size <= 10_000
    assert read(orders, START + 60_000, offset=59_900, cache=cache) == data[-len(batches(data)[-1]) :]


@given(
    st.floats(1e-3, 1e6) | st.integers(1, 100).map(float),
    st.integers(0, 50),
    st.integers(0, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_a_record_is_found_by_its_time(rate: float, base_offset: int, offset: int) -> None:
    log = SyntheticLog(START, base_offset)
    at = log.timestamp_of(offset, rate)
    now = log.there_at(offset, rate)
    assert now is not None
    assert log.end_offset(now, rate) > offset
    first = log.first_record_since(at, now, rate)
    assert first is not None
    assert first[0] <= offset
    assert first[1] == at
    later = log.first_record_since(at + 1, now, rate)
    assert later is None or later[0] > offset


def test_a_fetch_waits_until_the_log_has_grown() -> None:
    driven = DrivenNode()
    create(driven, topic("orders", 1, **rated("4")))
    waits = driven.send(fetch(name="orders"), 12)
    driven.elapse(249)
    assert waits not in driven.replies
    driven.elapse(1)
    assert only(driven.replies[waits]).high_watermark == 1
    more = driven.send(fetch(1, name="orders", min_bytes=1_000, max_wait_ms=60_000), 12)
    driven.elapse(60_000)
    (batch,) = batches(bytes(only(driven.replies[more]).records or b""))
    assert len(batch) >= 1_000
    assert len(read(Topic("orders", "id", 4.0, [SyntheticLog(START)]), START + 250)) < 1_000


def test_a_log_that_does_not_grow_is_waited_for_as_long_as_the_fetch_says() -> None:
    driven = DrivenNode(emulator_records_per_second=0.0)
    waits = driven.send(fetch(), 12)
    driven.elapse(499)
    assert waits not in driven.replies
    driven.elapse(1)
    assert only(driven.replies[waits]).records == b""


def test_records_that_a_test_writes_wake_a_fetch() -> None:
    driven = DrivenNode(emulator_records_per_second=0.0)
    waits = driven.send(fetch(), 12)
    driven.step(RecordsWritten("t", 0, 3))
    (batch,) = batches(bytes(only(driven.replies[waits]).records or b""))
    assert parse_header(batch).records_count == 3


def test_a_fetch_ends_when_its_topic_is_deleted() -> None:
    driven = DrivenNode(emulator_records_per_second=0.0)
    waits = driven.send(fetch(), 12)
    driven.ask(DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5)
    assert only(driven.replies[waits]).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("offset", "error"), [(-1, ErrorCode.OFFSET_OUT_OF_RANGE), (1, ErrorCode.OFFSET_OUT_OF_RANGE)])
def test_offsets_beyond_the_log_are_refused(offset: int, error: ErrorCode) -> None:
    assert only(DrivenNode().ask(fetch(offset), 12)).error_code is error


# --- ListOffsets, as for a real log


@pytest.fixture
def growing() -> DrivenNode:
    """A node with a topic ``orders`` that gets two records a second, and has twenty."""
    driven = DrivenNode()
    create(driven, topic("orders", 1, **rated("2")))
    driven.elapse(10_000)
    return driven


def look_up(driven: DrivenNode, timestamp: int, *, name: str = "orders", isolation_level: int = 0, **more: Any) -> Any:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **more)
    topics = (ListOffsetsTopic(name=name, partitions=(wanted,)),)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics, timeout_ms=0)
    return driven.ask(request, 11).topics[0].partitions[0]


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (-1, 20, 0)),
        (-2, (-1, 0, 0)),
        (-3, (START + 9_500, 19, 0)),
        (-4, (-1, 0, 0)),
        (-5, (-1, -1, -1)),
        (-6, (-1, -1, -1)),
        (START + 500, (START + 500, 1, 0)),
        (START + 9_501, (-1, -1, -1)),
    ],
)
def test_a_synthetic_log_is_looked_up_like_a_real_one(
    growing: DrivenNode, timestamp: int, found: tuple[int, int, int]
) -> None:
    answer = look_up(growing, timestamp)
    assert answer.error_code is ErrorCode.NONE
    assert (answer.timestamp, answer.offset, answer.leader_epoch) == found


@pytest.mark.parametrize("timestamp", [-3, START])
def test_what_an_empty_synthetic_log_does_not_have_has_no_leader_epoch(timestamp: int) -> None:
    driven = DrivenNode()
    create(driven, topic("empty", 1, **rated("0")))
    answer = look_up(driven, timestamp, name="empty")
    assert (answer.timestamp, answer.offset, answer.leader_epoch) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"current_leader_epoch": 0}, ErrorCode.NONE),
        ({"current_leader_epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"isolation_level": 1}, ErrorCode.NONE),
        ({"isolation_level": 2}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_look_up_that_a_real_log_refuses_is_refused_by_a_synthetic_one(
    growing: DrivenNode, fields: dict[str, Any], error: ErrorCode
) -> None:
    assert look_up(growing, -1, **fields).error_code is error
