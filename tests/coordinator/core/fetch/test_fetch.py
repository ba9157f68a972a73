"""Fetch from real logs: waiting, limits, and errors. ``tests/conformance`` replays recordings of Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import (
    FetchablePartitionResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import TOPIC, DrivenNode, topic
from tests.coordinator.core.partitions.test_leading import Appender
from tests.coordinator.core.topics.test_topics import create, rated
from tests.protocol.wire.test_record_batch import ONE_RECORD

MEBIBYTE = 1 << 20
BATCH = len(ONE_RECORD)


def fetch(offset: int = 0, *, name: str = TOPIC, topic_id: str = ZERO_UUID, **given: Any) -> FetchRequest:
    """A Fetch of partition 0 that waits for up to half a second for a byte."""
    of_partition: dict[str, Any] = {
        key: given.pop(key)
        for key in ("partition", "current_leader_epoch", "last_fetched_epoch", "partition_max_bytes")
        if key in given
    }
    partition = FetchPartition(
        **{"partition": 0, "fetch_offset": offset, "partition_max_bytes": MEBIBYTE} | of_partition
    )
    usual: dict[str, Any] = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": MEBIBYTE,
        "topics": (_topic(name, topic_id, partition),),
        "forgotten_topics_data": (),
    }
    return FetchRequest(**usual | given)


def _topic(name: str, topic_id: str, *partitions: FetchPartition) -> FetchTopic:
    if topic_id == ZERO_UUID:
        return FetchTopic(topic=name, partitions=partitions)
    return FetchTopic(topic_id=topic_id, partitions=partitions)


def only(response: object) -> FetchablePartitionResponse:
    """The one partition of a response."""
    assert isinstance(response, FetchResponse), "the Fetch waits"
    ((partition,),) = (each.partitions for each in response.responses)
    return partition


class Broker(Appender):
    """A node whose topic ``t`` has a real log, with settings."""

    def __init__(self, **settings: Any) -> None:
        DrivenNode.__init__(self, emulator_records_per_second=None, **settings)

    def append(self, completion: AppendCompletion | None = None) -> None:
        self.node._ctx.effects = []  # the last step's, long carried out
        super().append(completion)


def id_of(driven: Broker, name: str = TOPIC) -> str:
    return next(view.topic_id for view in driven.node.describe_topics(driven.now) if view.topic == name)


def test_records_come_as_they_are_stored() -> None:
    driven = Broker()
    driven.append()
    found = only(driven.ask(fetch(), 12))
    assert (found.error_code, found.high_watermark, found.last_stable_offset, found.log_start_offset) == (0, 1, 1, 0)
    assert found.records is not None
    assert bytes(found.records) == driven.partition().log.batches[0].data
    assert found.aborted_transactions is None
    assert only(driven.ask(fetch(isolation_level=1), 12)).aborted_transactions == ()


def test_a_fetch_waits_for_records_and_no_longer_than_it_says() -> None:
    driven = Broker()
    waits = driven.send(fetch(), 12)
    driven.elapse(200)
    assert waits not in driven.replies
    driven.append()
    assert only(driven.replies[waits]).high_watermark == 1
    waits = driven.send(fetch(1), 12)
    driven.elapse(499)
    assert waits not in driven.replies
    driven.elapse(1)
    assert only(driven.replies[waits]).records == b""


def test_records_that_are_not_stored_yet_wake_no_one() -> None:
    driven = Broker()
    waits = driven.send(fetch(), 12)
    driven.logs.defers_appends = True
    driven.append()
    assert waits not in driven.replies
    found = only(driven.ask(fetch(max_wait_ms=0), 12))
    assert (found.high_watermark, found.records) == (0, b"")
    driven.logs.end_append()
    assert only(driven.replies[waits]).high_watermark == 1


@pytest.mark.parametrize(("min_bytes", "batches"), [(BATCH, 1), (BATCH + 1, 2), (3 * BATCH, 3)])
def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for(min_bytes: int, batches: int) -> None:
    driven = Broker()
    waits = driven.send(fetch(min_bytes=min_bytes), 12)
    for _ in range(batches):
        assert waits not in driven.replies
        driven.append()
    assert len(only(driven.replies[waits]).records or b"") == batches * BATCH


def test_a_partition_counts_for_no_more_bytes_than_it_may_give() -> None:
    driven = Broker()
    waits = driven.send(fetch(min_bytes=2 * BATCH, partition_max_bytes=BATCH), 12)
    driven.append()
    driven.append()
    assert waits not in driven.replies
    driven.elapse(500)
    assert len(only(driven.replies[waits]).records or b"") == BATCH


@pytest.mark.parametrize(
    "sizes",
    [
        {"partition_max_bytes": -1},
        {"partition_max_bytes": -(2**31)},
        {"max_bytes": -1},
        {"max_bytes": -5, "partition_max_bytes": -3},
    ],
)
def test_a_negative_size_fails_where_there_is_something_to_read(sizes: dict[str, Any]) -> None:
    """As a real 4.4 answers: LogSegment.read refuses the size, and nothing is read at the end of a log."""
    driven = Broker()
    at_once = {**sizes, "max_wait_ms": 0}
    assert only(driven.ask(fetch(**at_once), 12)).error_code is ErrorCode.NONE
    driven.append()
    for isolation_level in (0, 1):
        failed = only(driven.ask(fetch(isolation_level=isolation_level, **sizes), 12))
        assert failed.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert (failed.high_watermark, failed.last_stable_offset, failed.log_start_offset) == (-1, -1, -1)
        assert not failed.records
    assert only(driven.ask(fetch(1, **at_once), 12)).error_code is ErrorCode.NONE
    assert only(driven.ask(fetch(2, **at_once), 12)).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_behind_a_partition_that_failed_by_its_size_the_next_one_is_read() -> None:
    driven = Broker()
    driven.append()
    both = tuple(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size) for size in (-1, MEBIBYTE))
    create(driven, topic("other", 1))
    topics = (_topic(TOPIC, ZERO_UUID, both[0]), _topic("other", ZERO_UUID, both[1]))
    answer = driven.ask(fetch(topics=topics, max_bytes=-1), 12)
    assert isinstance(answer, FetchResponse)
    assert [each.partitions[0].error_code for each in answer.responses] == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NONE,
    ]


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_of_nothing_give_one_batch(size: int) -> None:
    driven = Broker()
    driven.append()
    driven.append()
    assert len(only(driven.ask(fetch(partition_max_bytes=size), 12)).records or b"") == BATCH
    assert len(only(driven.ask(fetch(max_bytes=size), 12)).records or b"") == BATCH


def test_a_fetch_that_names_no_epoch_in_another_way_waits_as_well() -> None:
    driven = Broker()
    waits = driven.send(fetch(min_bytes=2 * BATCH, current_leader_epoch=-2), 12)
    driven.append()
    assert waits not in driven.replies
    driven.append()
    assert len(only(driven.replies[waits]).records or b"") == 2 * BATCH


def test_a_thousand_fetches_that_wait_cost_one_look_each(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Broker()
    waiting = [driven.send(fetch(), 12) for _ in range(1_000)]
    looks = {"read": 0, "bytes_between": 0}
    for name in looks:
        method = getattr(PartitionLog, name)

        def counted(*args: Any, name: str = name, method: Any = method, **more: Any) -> Any:
            looks[name] += 1
            return method(*args, **more)

        monkeypatch.setattr(PartitionLog, name, counted)
    driven.append()
    assert [token for token in driven.replies if token in waiting] == waiting
    assert looks == {"read": 1_000, "bytes_between": 1_000}
    driven.append()
    assert looks == {"read": 1_000, "bytes_between": 1_000}


def test_a_fetch_of_many_partitions_looks_only_at_the_one_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Broker()
    create(driven, topic("wide", 100))
    wide = tuple(FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in range(100))
    driven.send(fetch(min_bytes=1_000, topics=(FetchTopic(topic="wide", partitions=wide), *fetch().topics)), 12)
    looks: list[int] = []
    method = PartitionLog.bytes_between

    def counted(log: PartitionLog, offset: int, limit: int, at_most: int) -> int:
        looks.append(offset)
        return method(log, offset, limit, at_most)

    monkeypatch.setattr(PartitionLog, "bytes_between", counted)
    driven.append()
    assert len(looks) == 1


def test_a_fetch_that_waits_ends_when_its_partition_is_led_elsewhere() -> None:
    driven = Broker()
    waits = driven.send(fetch(), 12)
    driven.resign()
    assert only(driven.replies[waits]).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_that_waits_ends_when_its_topic_is_deleted() -> None:
    driven = Broker()
    waits = driven.send(fetch(), 12)
    driven.ask(DeleteTopicsRequest(topic_names=(TOPIC,), timeout_ms=1), 5)
    assert only(driven.replies[waits]).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_leader_epoch_is_checked_where_it_is_known() -> None:
    driven = Broker()
    driven.elect()
    for epoch, error in (
        (-1, ErrorCode.NONE),
        (-2, ErrorCode.NONE),
        (-(2**31), ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        found = only(driven.ask(fetch(current_leader_epoch=epoch, max_wait_ms=0), 12))
        assert found.error_code is error
        if error is not ErrorCode.NONE:
            assert (found.high_watermark, found.aborted_transactions, found.records) == (-1, None, b"")


@pytest.mark.parametrize("version", [15, 16])
def test_where_the_leader_is_comes_with_the_error(version: int) -> None:
    driven = Broker()
    driven.elect()
    response = driven.ask(fetch(topic_id=id_of(driven), current_leader_epoch=0), version)
    leader = only(response).current_leader
    if version < 16:
        assert (leader.leader_id, response.node_endpoints) == (-1, ())
    else:
        (endpoint,) = response.node_endpoints
        assert (leader.leader_id, leader.leader_epoch) == (endpoint.node_id, 1)


def test_a_log_that_went_another_way_is_found_out() -> None:
    driven = Broker()
    driven.append()
    driven.elect()
    driven.append()
    found = only(driven.ask(fetch(2, last_fetched_epoch=0), 12))
    assert (found.error_code, found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 0, 1)
    assert (found.records, found.high_watermark) == (b"", 2)
    assert only(driven.ask(fetch(1, last_fetched_epoch=0), 12)).records != b""
    assert only(driven.ask(fetch(2, last_fetched_epoch=7), 12)).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_topic_is_known_by_its_id_until_it_is_made_again() -> None:
    driven = Broker()
    topic_id = id_of(driven)
    begun = driven.ask(fetch(topic_id=topic_id, session_epoch=0, max_wait_ms=0), 17)
    assert begun.session_id

    def go_on(epoch: int) -> FetchResponse:
        more = fetch(max_wait_ms=0, session_id=begun.session_id, session_epoch=epoch, topics=())
        response = driven.ask(more, 17)
        assert isinstance(response, FetchResponse)
        return response

    assert go_on(1).responses == ()
    driven.ask(DeleteTopicsRequest(topic_names=(TOPIC,), timeout_ms=1), 5)
    assert only(go_on(2)).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(driven.ask(fetch(topic_id=topic_id), 17)).error_code is ErrorCode.UNKNOWN_TOPIC_ID
    create(driven, topic(TOPIC, 1))
    assert only(go_on(3)).error_code is ErrorCode.INCONSISTENT_TOPIC_ID
    assert only(driven.ask(fetch(topic_id=topic_id), 17)).error_code is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_that_may_not_be_read_is_refused() -> None:
    driven = Broker(emulator_deny=("User:eve:READ:topic=t",))
    found = only(driven.ask(fetch(), 12, principal="User:eve"))
    assert (found.error_code, found.aborted_transactions) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    assert driven.ask(fetch(), 12) is None


def test_a_partition_that_is_refused_does_not_end_the_wait_of_others() -> None:
    driven = Broker()
    waits = driven.send(fetch(topics=(*fetch(name="unknown").topics, *fetch().topics)), 12)
    assert waits not in driven.replies
    driven.append()
    response = driven.replies[waits]
    assert isinstance(response, FetchResponse)
    assert [(each.topic, each.partitions[0].error_code) for each in response.responses] == [
        (TOPIC, ErrorCode.NONE),
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_an_isolation_level_that_is_unknown_is_refused() -> None:
    found = only(Broker().ask(fetch(isolation_level=2), 12))
    assert found.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_node_gives_no_more_than_its_own_limit() -> None:
    driven = Broker(fetch_max_bytes=1_024)
    for _ in range(20):
        driven.append()
    assert len(only(driven.ask(fetch(), 12)).records or b"") == 1_024


ODD = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 70, 139, 2**31 - 1])


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "offset": st.sampled_from([-(2**63), -1, 0, 1, 2, 5, 2**63 - 1]),
                "partition": st.sampled_from([-1, 0, 1, 2**31 - 1]),
                "partition_max_bytes": ODD,
                "current_leader_epoch": st.sampled_from([-2, -1, 0, 1]),
                "last_fetched_epoch": st.sampled_from([-2, -1, 0, 1]),
                "max_wait_ms": st.sampled_from([-1, 0, 1, 500]),
                "min_bytes": ODD,
                "max_bytes": ODD,
                "isolation_level": st.sampled_from([0, 1]),
                "session_id": st.sampled_from([-1, 0, 1, 2, 3]),
                "session_epoch": st.sampled_from([-2, -1, 0, 1, 2]),
                "name": st.sampled_from([TOPIC, "synthetic", "unknown", OFFSETS_TOPIC, ""]),
            }
        ),
        max_size=8,
    ),
    st.lists(st.integers(0, 8), max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_asked_is_answered_once(requests: list[dict[str, Any]], appends: list[int]) -> None:
    driven = Broker()
    create(driven, topic("synthetic", 1, **rated("5")))
    sent = []
    for number, request in enumerate(requests):
        sent.append(driven.send(fetch(**request), 12))
        if number in appends:
            driven.append()
        driven.elapse(100)
    driven.append()
    driven.elapse(500)
    assert all(number in driven.replies for number in sent)
    assert driven.node.waiting() == []
    assert driven.emitted(CoreFailed) == []


def test_a_copy_of_a_node_answers_the_fetches_that_wait_there() -> None:
    driven = Broker()
    waits = driven.send(fetch(), 12)
    assert driven.node.waiting() == [waits]
    copied = driven.node.copy(lambda token: ("copy", token))
    assert copied.waiting() == [("copy", waits)]
    driven.elapse(500)
    assert driven.node.waiting() == []
    assert copied.waiting() == [("copy", waits)]
    assert copied.next_deadline() == driven.now
