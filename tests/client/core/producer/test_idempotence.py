"""Exactly once and in order: producer ids, sequences, retries and new epochs."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.inputs import Failure
from rejoin.client.core.producer import sequences
from rejoin.client.core.producer.reactions import ON_PRODUCE, ProducerReaction
from rejoin.client.core.producer.state import PartitionQueue, ProducerBatch, ProducerCoreState
from rejoin.client.producer_config import checked_producer_config
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition
from tests.client.core.producer.bench import Bench


def ready(**settings: Any) -> Bench:
    """A bench whose producer has its id and knows the topic."""
    bench = Bench(**settings)
    bench.produce("first")
    bench.flush()
    bench.answer(base_offset=0)
    bench.take()
    return bench


def test_nothing_is_sent_without_a_producer_id() -> None:
    bench = Bench()
    bench.init_error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.produce("a")
    bench.advance(5_000)
    assert bench.requests.count("InitProducerId") > 3
    bench.init_error = ErrorCode.NONE
    bench.advance(5_000)
    assert bench.take() == ["a waits", "a goes on", "Produce to 1: t-0 0/0 x1"]


def test_batches_behind_one_that_failed_are_sent_after_it_one_by_one() -> None:
    bench = ready()
    bench.produce("a", "b", "c")
    assert bench.take() == [f"Produce to 1: t-0 0/{sequence} x1" for sequence in (1, 2, 3)]
    bench.lose()
    bench.lose()
    bench.lose(Failure.TIMEOUT)
    bench.produce("d")
    bench.advance(1_000)
    assert bench.take() == ["Produce to 1: t-0 0/1 x1"]
    bench.answer(base_offset=1)
    assert bench.take() == ["a stored t-0@1", "Produce to 1: t-0 0/2 x1"]
    bench.answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    # The last of them is no longer alone: new batches may follow it at once.
    assert bench.take() == ["b stored t-0@-1", "Produce to 1: t-0 0/3 x1", "Produce to 1: t-0 0/4 x1"]


def test_the_first_batch_of_an_epoch_is_alone_in_flight() -> None:
    # A broker that does not know the producer would store the second one, if the first one failed.
    bench = Bench(topics={"t": 2})
    bench.produce("a", "b", "c")
    bench.produce("d", partition=1)
    assert bench.take()[2:] == ["Produce to 1: t-0 0/0 x1", "Produce to 1: t-1 0/0 x1"]
    bench.answer()
    assert bench.take() == ["a stored t-0@0", "Produce to 1: t-0 0/1 x2"]


def test_a_batch_out_of_order_behind_an_open_one_waits_for_it() -> None:
    bench = ready()
    bench.produce("a", "b")
    bench.take()
    bench.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, index=1)
    bench.lose()
    bench.advance(1_000)
    bench.answer(base_offset=1)
    assert bench.take() == ["Produce to 1: t-0 0/1 x1", "a stored t-0@1", "Produce to 1: t-0 0/2 x1"]


def test_the_next_batch_out_of_order_starts_a_new_epoch() -> None:
    # The broker has lost what it acknowledged.
    bench = ready()
    bench.produce("a", "b")
    bench.take()
    bench.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.advance(1_000)
    bench.answer(base_offset=0)
    assert bench.take() == ["Produce to 1: t-0 1/0 x1", "a stored t-0@0", "Produce to 1: t-0 1/1 x1"]


def test_a_batch_that_is_refused_leaves_no_gap() -> None:
    bench = ready()
    bench.produce("a", "b")
    bench.take()
    bench.answer(ErrorCode.INVALID_RECORD)
    bench.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.advance(1_000)
    assert bench.take() == ["a failed: t-0: INVALID_RECORD (87)", "Produce to 1: t-0 1/0 x1"]


def test_other_partitions_follow_to_the_new_epoch_when_nothing_of_theirs_is_in_flight() -> None:
    bench = Bench(topics={"t": 2})
    bench.produce("a", partition=1)
    bench.answer()
    bench.produce("b", partition=1)
    bench.produce("c", partition=0)
    bench.take()
    bench.answer(ErrorCode.INVALID_RECORD, index=1)
    bench.produce("d", partition=1)
    assert bench.take() == ["c failed: t-0: INVALID_RECORD (87)"]
    bench.answer()
    assert bench.take() == ["b stored t-1@0", "Produce to 1: t-1 1/0 x1"]


def test_a_batch_that_expired_is_waited_for_before_the_epoch_grows() -> None:
    bench = ready(delivery_timeout_ms=1_000, request_timeout_ms=900)
    bench.produce("a")
    bench.advance(600)
    bench.produce("b")
    bench.advance(400)
    bench.produce("c")
    assert [line for line in bench.take() if "Produce" in line] == [
        "Produce to 1: t-0 0/1 x1",
        "Produce to 1: t-0 0/2 x1",
    ]
    bench.lose()
    bench.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.advance(300)
    assert bench.take()[-1] == "Produce to 1: t-0 1/0 x1"
    bench.answer()
    assert bench.take() == ["b stored t-0@0", "Produce to 1: t-0 1/1 x1"]


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    bench = Bench()
    bench.producer = (7, 32_767)
    bench.produce("a")
    bench.producer = (8, 0)
    bench.answer(ErrorCode.INVALID_RECORD)
    bench.produce("b")
    assert bench.take()[-1] == "Produce to 1: t-0 0/0 x1"
    assert bench.core.producer == (8, 0)


def test_sequences_start_again_at_zero_after_the_largest() -> None:
    queue = PartitionQueue(TopicPartition("t", 0), next_sequence=2**31 - 1, last_acked_sequence=2**31 - 2)
    state = ProducerCoreState()
    batch = ProducerBatch(queue, 0, None, 0, 0, tokens=["a", "b", "c"])
    sequences.number(state, queue, batch)
    assert (batch.base_sequence, batch.last_sequence, queue.next_sequence) == (2**31 - 1, 1, 2)
    assert queue.is_next(2**31 - 1)
    sequences.acked(queue, batch, base_offset=5)
    assert (queue.last_acked_sequence, queue.last_acked_offset) == (1, 7)
    assert queue.is_next(2)


def test_a_batch_has_the_number_of_its_first_record() -> None:
    queue = PartitionQueue(TopicPartition("t", 0))
    numbered = []
    for tokens in (["a", "b", "c"], ["d"], ["e", "f"]):
        batch = ProducerBatch(queue, 0, None, 0, 0, tokens=list(tokens))
        sequences.number(ProducerCoreState(), queue, batch)
        numbered.append((batch.base_sequence, batch.last_sequence))
    assert numbered == [(0, 2), (3, 3), (4, 5)]


def test_a_broker_that_has_forgotten_the_producer_gets_a_new_epoch() -> None:
    bench = ready()
    bench.produce("a")
    bench.answer(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=5)
    bench.advance(200)
    assert bench.take()[-1] == "Produce to 1: t-0 1/0 x1"


@pytest.mark.parametrize("error", [error for error, what in ON_PRODUCE.items() if what is ProducerReaction.FATAL])
def test_a_fatal_error_fails_all_records(error: ErrorCode) -> None:
    bench = ready()
    bench.produce("a", "b")
    bench.take()
    bench.answer(error)
    bench.produce("c")
    text = f"t-0: {error.name} ({error.value})"
    assert bench.take() == [f"{value} failed: {text}" for value in "abc"]


@pytest.mark.parametrize(
    "error", [error for error, what in ON_PRODUCE.items() if what in (ProducerReaction.RETRY, ProducerReaction.REFRESH)]
)
def test_what_may_succeed_later_is_sent_again(error: ErrorCode) -> None:
    bench = ready(retries=2)
    bench.produce("a")
    for _ in range(3):
        bench.answer(error)
        bench.advance(1_000)
    sent = "Produce to 1: t-0 0/1 x1"
    assert bench.take() == [sent, sent, sent, f"a failed: t-0: {error.name} ({error.value})"]
    bench.produce("b")
    assert bench.take() == ["Produce to 1: t-0 1/0 x1"]


def test_without_idempotence_batches_can_overtake_one_another() -> None:
    bench = Bench(enable_idempotence=False)
    bench.produce("a", "b")
    bench.lose()
    bench.lose()
    bench.advance(1_000)
    assert [bench.batches(index)["t-0"] for index in range(2)] == [["b"], ["a"]]


def test_with_one_request_in_flight_they_cannot() -> None:
    bench = Bench(enable_idempotence=False, max_in_flight_requests_per_connection=1)
    bench.produce("a", "b")
    bench.lose()
    bench.advance(1_000)
    assert [bench.batches(index)["t-0"] for index in range(len(bench.in_flight))] == [["a"]]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"enable_idempotence": True, "acks": 1}, "enable.idempotence needs acks=all"),
        ({"enable_idempotence": True, "retries": 0}, "enable.idempotence needs retries above 0"),
        (
            {"max_in_flight_requests_per_connection": 6},
            "enable.idempotence needs max.in.flight.requests.per.connection of at most 5",
        ),
        (
            {"delivery_timeout_ms": 10},
            "delivery.timeout.ms must be at least linger.ms plus request.timeout.ms",
        ),
    ],
)
def test_settings_that_exclude_one_another(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        checked_producer_config(settings)


def test_idempotence_is_the_default() -> None:
    config = checked_producer_config({})
    assert (config.enable_idempotence, config.acks) == (True, "all")


def test_acks_1_alone_switches_idempotence_off() -> None:
    assert not checked_producer_config({"acks": "1"}).enable_idempotence
    assert not checked_producer_config({"retries": 0}).enable_idempotence
    assert checked_producer_config({"acks": -1}).enable_idempotence
