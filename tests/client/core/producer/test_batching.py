"""Records become batches: by partition, size and time, within the memory that there is."""

from __future__ import annotations

import pytest

from rejoin.client.core.inputs import Failure
from rejoin.client.core.producer.inputs import Disconnected
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_of_key
from rejoin.protocol.types import TopicPartition
from tests.client.core.producer.bench import Bench


def test_a_batch_waits_for_linger_ms() -> None:
    bench = Bench(linger_ms=20)
    bench.produce("a", "b")
    assert bench.take() == ["a waits", "a goes on"]  # for metadata
    assert bench.core.next_deadline() == bench.now + 20
    bench.advance(20)
    assert bench.take() == ["Produce to 1: t-0 0/0 x2"]
    bench.answer(base_offset=10)
    assert bench.take() == ["a stored t-0@10", "b stored t-0@11"]


def test_a_full_batch_does_not_wait() -> None:
    bench = Bench(linger_ms=1_000, batch_size=200)
    bench.produce("first")
    bench.take()
    bench.produce(*(str(number) * 40 for number in range(3)))
    assert bench.take() == ["Produce to 1: t-0 0/0 x3"]


def test_a_request_has_a_batch_of_each_partition_of_its_node() -> None:
    bench = Bench(linger_ms=5, topics={"t": 2, "u": 1})
    bench.produce("a", partition=0)
    bench.produce("b", partition=1)
    bench.produce("c", topic="u")
    bench.take()
    bench.advance(5)
    assert bench.take() == ["Produce to 1: t-0 0/0 x1, t-1 0/0 x1, u-0 0/0 x1"]


def test_max_request_size_bounds_a_request_and_a_record() -> None:
    bench = Bench(linger_ms=5, topics={"t": 2}, max_request_size=150)
    bench.produce("a" * 50, partition=0)
    bench.produce("b" * 50, partition=1)
    bench.produce("c" * 100)
    assert bench.take()[-1] == (
        f"{'c' * 100} failed: the record has 170 bytes when it is serialized, and max.request.size is 150"
    )
    bench.advance(5)
    assert bench.take() == ["Produce to 1: t-0 0/0 x1", "Produce to 1: t-1 0/0 x1"]


def test_requests_in_flight_are_bounded_by_node() -> None:
    bench = Bench(max_in_flight_requests_per_connection=2, enable_idempotence=False)
    bench.produce("a", "b", "c")
    assert bench.take()[2:] == ["Produce to 1: t-0 x1", "Produce to 1: t-0 x1"]
    bench.answer()
    assert bench.take() == ["a stored t-0@0", "Produce to 1: t-0 x1"]


def test_memory_is_bounded_and_records_wait_for_it_in_order() -> None:
    bench = Bench(linger_ms=1_000, batch_size=100, buffer_memory=300, max_block_ms=500)
    values = [letter * 60 for letter in "abcd"]
    bench.produce(*values)
    lines = [line[:1] + line[60:] for line in bench.take()]
    # A record that waits for memory hurries what is in it.
    assert lines == ["a waits", "a goes on", "P", "c waits", "d waits"]
    assert bench.core.buffered_bytes <= 300
    bench.answer()
    assert [line[:1] + line[60:] for line in bench.take()][:2] == ["a stored t-0@0", "c goes on"]
    bench.advance(500)
    assert (
        bench.take()[-1] == f"{'d' * 60} failed: no memory for a record of topic t after 500 ms: buffer.memory is full"
    )


def test_a_topic_that_is_not_there_fails_after_max_block_ms() -> None:
    bench = Bench(topics={}, max_block_ms=3_000)
    bench.produce("a")
    bench.advance(3_000)
    assert bench.take() == ["a waits", "a failed: topic t not present in metadata after 3000 ms"]
    assert bench.requests.count("Metadata") > 3


def test_a_record_that_waited_for_a_broker_in_vain_fails_with_the_reason() -> None:
    bench = Bench(topics={}, max_block_ms=3_000)
    bench.metadata_problem = "nowhere:9092: connection refused"
    bench.produce("a")
    bench.advance(3_000)
    assert bench.take()[-1] == f"a failed: topic t not present in metadata after 3000 ms: {bench.metadata_problem}"


def test_a_partition_that_is_not_there_may_still_come() -> None:
    bench = Bench(topics={"t": 1})
    bench.produce("a", partition=1)
    assert bench.take() == ["a waits"]
    assert bench.core.next_deadline() is not None
    bench.topics["t"] = 2
    bench.advance(1_000)
    assert bench.take() == ["a goes on", "Produce to 1: t-1 0/0 x1"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "a failed: not authorized for topics: t"),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "a failed: invalid topic: 't'"),
    ],
)
def test_a_topic_that_cannot_be_used_fails_at_once(error: ErrorCode, text: str) -> None:
    bench = Bench()
    bench.topic_error = error
    bench.produce("a")
    assert bench.take() == ["a waits", text]


@pytest.mark.parametrize(("count", "has"), [(1, "1 partition"), (3, "3 partitions")])
def test_a_partition_that_is_not_there_fails_after_max_block_ms(count: int, has: str) -> None:
    bench = Bench(topics={"t": count}, max_block_ms=500)
    bench.produce("a", partition=7)
    bench.advance(500)
    reason = f"partition 7 of topic t, which has {has}, not present in metadata after 500 ms"
    assert bench.take() == ["a waits", f"a failed: {reason}"]


def test_a_flush_sends_at_once_and_ends_with_its_records() -> None:
    bench = Bench(linger_ms=60_000)
    bench.produce("a")
    bench.flush()
    assert bench.take()[2:] == ["Produce to 1: t-0 0/0 x1"]
    bench.produce("b")
    assert bench.take() == []
    bench.answer()
    assert bench.take() == ["a stored t-0@0", "Produce to 1: t-0 0/1 x1", "flush done"]


def test_close_waits_for_records_and_gives_up_after_its_timeout() -> None:
    bench = Bench(linger_ms=60_000)
    bench.produce("a")
    bench.close(timeout_ms=400)
    bench.produce("b")
    assert bench.take()[2:] == ["Produce to 1: t-0 0/0 x1", "b failed: this producer is closed"]
    bench.advance(400)
    assert bench.take() == ["a failed: the producer was closed before the record was stored", "close done"]
    assert bench.core.closed
    assert bench.core.next_deadline() is None


def test_delivery_timeout_ms_ends_waiting_in_the_queue_and_in_flight() -> None:
    bench = Bench(delivery_timeout_ms=1_000, request_timeout_ms=900)
    bench.produce("a")
    bench.lose()
    bench.answers_metadata = False
    bench.take()
    bench.advance(950)
    assert bench.take() == ["Produce to 1: t-0 0/0 x1"]
    bench.produce("b")
    bench.take()
    bench.advance(50)
    expired = "expiring 1 record(s) for t-0: 1000 ms have passed since the batch was created"
    # The broker does not have it: what comes next begins a new epoch.
    assert bench.take() == [f"a failed: {expired}", "Produce to 1: t-0 1/0 x1"]


def test_acks_0_is_done_once_it_is_written() -> None:
    bench = Bench(acks=0)
    bench.produce("a")
    assert bench.take()[2:] == ["Produce to 1: t-0 x1"]
    bench.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # HTTP has an answer even then; Kafka's protocol has none
    assert bench.take() == ["a stored t-0@-1"]


def test_a_closed_connection_has_leaders_looked_up() -> None:
    bench = Bench(acks=0)
    bench.produce("a")
    bench.advance(1_000)
    asked = bench.requests.count("Metadata")
    bench.step(Disconnected())
    assert bench.requests.count("Metadata") == asked + 1


def test_throttled_nodes_are_left_alone() -> None:
    bench = Bench()
    bench.produce("a")
    bench.answer(throttle_ms=700)
    bench.produce("b")
    bench.take()
    bench.advance(699)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["Produce to 1: t-0 0/1 x1"]


def test_a_batch_that_is_too_large_is_split_and_a_record_that_is_fails() -> None:
    bench = Bench(linger_ms=5)
    bench.produce("a", "b", "c", "d")
    bench.advance(5)
    bench.take()
    bench.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.take() == ["Produce to 1: t-0 0/0 x2"]  # one at a time, as after any error
    bench.flush()
    bench.answer(base_offset=0)
    assert bench.take() == ["a stored t-0@0", "b stored t-0@1", "Produce to 1: t-0 0/2 x2"]
    bench.answer(ErrorCode.MESSAGE_TOO_LARGE)
    bench.take()
    bench.answer(base_offset=2)
    bench.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert bench.take() == [
        "c stored t-0@2",
        "Produce to 1: t-0 0/3 x1",
        "d failed: t-0: MESSAGE_TOO_LARGE (10)",
        "flush done",
    ]


def test_errors_of_single_records() -> None:
    bench = Bench(linger_ms=5)
    bench.produce("a", "b", "c")
    bench.advance(5)
    bench.take()
    bench.answer(ErrorCode.INVALID_RECORD, bad_records=(1,))
    assert bench.take() == [
        "a failed: t-0: INVALID_RECORD (87)",
        "b failed: t-0: INVALID_RECORD (87): bad",
        "c failed: t-0: INVALID_RECORD (87)",
    ]


def test_a_leader_that_is_named_in_the_answer_is_asked_at_once() -> None:
    bench = Bench()
    bench.produce("a")
    bench.take()
    bench.answers_metadata = False
    bench.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 5))
    assert bench.take() == ["Produce to 2: t-0 0/0 x1"]


def test_a_new_leader_is_looked_up_and_asked_without_backoff() -> None:
    bench = Bench(retry_backoff_ms=1_000, retry_backoff_max_ms=1_000, metadata_max_age_ms=2_000)
    bench.produce("a")
    bench.advance(2_500)
    bench.take()
    bench.leaders = {TopicPartition("t", 0): (2, 1)}
    bench.lose(Failure.TIMEOUT)
    assert bench.take() == ["Produce to 2: t-0 0/0 x1"]


def test_a_seeded_producer_chooses_the_same_sticky_partitions() -> None:
    bench = Bench(linger_ms=60_000, topics={"t": 3}, batch_size=100, random=0.4)
    bench.produce(*(f"{number:050}" for number in range(6)), partition=None)
    bench.flush()
    assert {name for send in range(len(bench.in_flight)) for name in bench.batches(send)} == {"t-1"}


def test_keys_choose_partitions_as_in_java() -> None:
    bench = Bench(linger_ms=60_000, topics={"t": 10})
    for key in ("orders", "billing", "eu"):
        bench.produce(key, partition=None, key=key.encode())
    bench.flush()
    chosen = {f"t-{partition_of_key(key, 10)}" for key in (b"orders", b"billing", b"eu")}
    assert bench.batches().keys() == chosen
