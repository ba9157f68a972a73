"""Transactions with confluent-kafka: a commit whose answer is lost, a fenced zombie, a transaction that times out."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from rejoin.coordinator.testing import BlockingGroupCoordinator

TRANSACTION_TIMEOUT_MS = 60_000  # transaction.timeout.ms
LOOKS_EVERY_MS = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
MARKERS_AFTER_MS = 20  # after an end that the producer did not ask for
PATIENCE_S = 30


@pytest.mark.group_coordinator(topics={"orders": 1})
def test_a_commit_whose_answer_is_lost_counts_once(group_coordinator: BlockingGroupCoordinator) -> None:
    writer = producer(group_coordinator)
    lost = group_coordinator.add_fault(keys="EndTxn", when="drop_response")
    writer.begin_transaction()
    writer.produce("orders", b"paid")
    writer.commit_transaction(PATIENCE_S)  # sends EndTxn again
    assert lost.hits == 1
    assert len(group_coordinator.requests("EndTxn")) == 2
    assert read_committed(group_coordinator) == [b"paid"]


@pytest.mark.group_coordinator(topics={"orders": 1})
def test_a_zombie_is_fenced(group_coordinator: BlockingGroupCoordinator) -> None:
    zombie = producer(group_coordinator)
    begin_with(zombie, b"of the zombie")
    successor = producer(group_coordinator)  # the same transactional.id: this aborts what is open
    begin_with(successor, b"of the successor")
    successor.commit_transaction(PATIENCE_S)
    assert error_of_commit(zombie) == "_FENCED"
    assert read_committed(group_coordinator) == [b"of the successor"]
    assert [each.value for each in group_coordinator.records("orders")] == [b"of the zombie", b"of the successor"]


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 1})
def test_a_transaction_that_takes_too_long_is_aborted(group_coordinator: BlockingGroupCoordinator) -> None:
    slow = producer(group_coordinator)
    begin_with(slow, b"too late")
    advanced = group_coordinator.advance(TRANSACTION_TIMEOUT_MS + LOOKS_EVERY_MS + MARKERS_AFTER_MS)
    assert "transaction_completed" in [each.event for each in advanced.events]
    assert error_of_commit(slow) == "_FENCED"
    restarted = producer(group_coordinator)
    begin_with(restarted, b"in time")
    restarted.commit_transaction(PATIENCE_S)
    assert read_committed(group_coordinator) == [b"in time"]


def producer(coordinator: BlockingGroupCoordinator) -> Producer:
    """The next producer of one transactional id."""
    settings = {"transactional.id": "transfer-1", "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "log_level": 0}
    made = Producer({"bootstrap.servers": coordinator.bootstrap_servers} | settings)
    made.init_transactions(PATIENCE_S)
    return made


def begin_with(writer: Producer, value: bytes) -> None:
    """Begin a transaction, and write a record in it."""
    writer.begin_transaction()
    writer.produce("orders", value)
    writer.flush(PATIENCE_S)


def error_of_commit(writer: Producer) -> str:
    """The name of the error with which a commit fails."""
    with pytest.raises(KafkaException) as raised:
        writer.commit_transaction(PATIENCE_S)
    return str(raised.value.args[0].name())


def read_committed(coordinator: BlockingGroupCoordinator) -> list[bytes | None]:
    """Records for a read_committed reader, up to the last stable offset."""
    settings = {"group.id": "readers", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": coordinator.bootstrap_servers} | settings)
    consumer.assign([TopicPartition("orders", 0, 0)])
    found = []
    while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    assert message is not None, "no end of the partition came"
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._PARTITION_EOF, error
    return found
