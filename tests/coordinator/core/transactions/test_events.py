"""The events of transactions: what the coordinator decided, and what is in the logs, in the words of the text form."""

from __future__ import annotations

from rejoin.journal.events.transactions import (
    LastStableOffsetHeld,
    ProducerEvent,
    ProducerFenced,
    TransactionalIdExpired,
    TransactionalLogEvent,
    TransactionCompleted,
    TransactionPrepared,
    TransactionsLoaded,
)
from rejoin.journal.formatting import format_event
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.driver import PARTITION, DrivenNode
from tests.coordinator.core.transactions.producer import Producer, node
from tests.coordinator.core.transactions.test_lifecycle import restart


def lines(driven: DrivenNode) -> list[str]:
    """The events of transactions so far, and no longer."""
    found = [each for each in driven.events if isinstance(each, (ProducerEvent, TransactionalLogEvent))]
    driven.events.clear()
    return [format_event(each) for each in found]


def begun(driven: DrivenNode, timeout_ms: int = 60_000) -> Producer:
    """A producer with an open transaction."""
    producer = Producer(driven, timeout_ms=timeout_ms)
    assert producer.init() is ErrorCode.NONE
    assert producer.produce() is ErrorCode.NONE
    return producer


def test_a_transaction_from_its_producer_id_to_its_last_marker() -> None:
    driven = node()
    producer = begun(driven)
    assert lines(driven) == [
        "tx  producer 0 epoch 0 initialized",
        "tx  transaction of producer 0 epoch 0 started: t:0",
        "t:0  transaction of producer 0 epoch 0 begins at 0",
    ]
    driven.elapse(250)
    assert producer.produce() is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    assert lines(driven) == [
        "tx  PrepareCommit after 250 ms",
        "t:0  COMMIT marker of producer 0 epoch 1, LSO 3 of 3",
        "tx  CompleteCommit, markers after 0 ms",
    ]


def test_a_transaction_that_times_out_and_its_producer() -> None:
    driven = node(emulator_transaction_version=1)
    producer = begun(driven, timeout_ms=5_000)
    lines(driven)
    driven.elapse(11_000)
    (prepared,), (completed,) = driven.emitted(TransactionPrepared), driven.emitted(TransactionCompleted)
    assert (prepared.committed, prepared.ended_by, prepared.open_ms) == (False, "timeout", 10_000)
    assert (completed.committed, completed.ended_by, completed.markers_ms) == (False, "timeout", 20)
    assert producer.end(version=4) is ErrorCode.PRODUCER_FENCED
    assert lines(driven)[-1] == "tx  producer 0 epoch 0 fenced in EndTxn: the epoch is 1"


def test_another_instance_takes_over_and_the_first_is_fenced_wherever_it_asks() -> None:
    driven = node()
    zombie, other = begun(driven), Producer(driven)
    assert other.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    driven.elapse(50)
    assert other.init() is ErrorCode.NONE
    assert other.produce() is ErrorCode.NONE
    (prepared,) = driven.emitted(TransactionPrepared)
    assert (prepared.committed, prepared.ended_by) == (False, "fencing")
    assert zombie.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.produce(version=11) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert [(each.api, each.transactional_id, each.current_epoch) for each in driven.emitted(ProducerFenced)] == [
        ("Produce", "tx", 2),
        ("Produce", "tx", 2),
    ]


def test_the_last_stable_offset_is_sampled_while_it_is_held() -> None:
    driven = node(transaction_partition_verification_enable=False)
    begun(driven)
    other = Producer(driven, "other")
    assert other.init() is ErrorCode.NONE
    for _ in range(60):
        assert other.produce() is ErrorCode.NONE
        driven.elapse(500)
    samples = driven.emitted(LastStableOffsetHeld)
    assert [(each.producer_id, each.last_stable_offset, each.end_offset, each.held_ms) for each in samples] == [
        (0, 0, 22, 10_000),
        (0, 0, 42, 20_000),
    ]


def test_a_transactional_id_that_is_loaded_and_expires() -> None:
    driven = node(transactional_id_expiration_ms=3_600_000)
    producer = begun(driven)
    assert producer.end() is ErrorCode.NONE
    restart(driven)
    (loaded,) = driven.emitted(TransactionsLoaded)
    assert (loaded.topic, loaded.partition, loaded.transactional_ids) == ("__transaction_state", PARTITION[1], 1)
    driven.elapse(7_200_000)
    assert [each.transactional_id for each in driven.emitted(TransactionalIdExpired)] == ["tx"]
