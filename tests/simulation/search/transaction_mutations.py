"""Broken rules of producers, of transactions, and of topics that grow: worlds look for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from rejoin.client.core.group import join_attempt
from rejoin.client.core.producer import sequences
from rejoin.client.core.producer.state import NO_PRODUCER
from rejoin.client.core.state.membership import MetadataSnapshot
from rejoin.coordinator.core.fetch import reading
from rejoin.coordinator.core.groups import loading
from rejoin.coordinator.core.groups.modern import metadata as group_metadata
from rejoin.coordinator.core.offsets import store
from rejoin.coordinator.core.partitions import partition, producer_state
from rejoin.coordinator.core.transactions import cleanup, ending, markers, metadata, producers, shard
from rejoin.coordinator.core.transactions.metadata import TransactionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import NO_SEQUENCE
from tests.simulation.search.mutations import Break, Mutation

TRANSACTIONAL: list[Mutation] = []

LOST, LEADER = "producer_and_lost_messages", "producer_and_a_new_leader"
SAME_ID, CRASH, TIMES_OUT = (
    "process_with_the_same_transactional_id",
    "transaction_and_a_crash",
    "transaction_that_times_out",
)
REBALANCE, FAILOVER = "transactions_over_a_rebalance", "transactions_and_a_failover"
GROWS, GROWS_MODERN = "topic_grows_in_mid_rebalance", "topic_grows_under_a_consumer_group"

WORLDS: Final = {
    "producers": (LOST, LEADER),
    "transactions": (CRASH, SAME_ID, TIMES_OUT, FAILOVER, REBALANCE),
}
"""By schedule of ``search``: the worlds in which a broken rule is looked for."""

FIRST: Final = {
    "a_new_leader_knows_no_producers": LEADER,
    "a_successor_gets_the_epoch_of_its_predecessor": SAME_ID,
    "a_fenced_producer_may_add_partitions": SAME_ID,
    "a_fenced_producer_may_end_a_transaction": SAME_ID,
    "batches_of_a_fenced_producer_are_taken": SAME_ID,
    "an_end_is_answered_before_it_is_stored": FAILOVER,
    "transactions_do_not_time_out": TIMES_OUT,
    "an_open_transaction_is_not_loaded": FAILOVER,
    "partitions_of_a_transaction_are_not_loaded": FAILOVER,
    "decided_transactions_get_no_markers_when_they_are_loaded": FAILOVER,
    "pending_offsets_are_not_loaded": FAILOVER,
    "the_leader_does_not_see_that_a_topic_has_grown": GROWS,
    "an_assignment_counts_as_one_of_the_newest_topics": GROWS,
    "a_consumer_group_does_not_see_that_a_topic_has_grown": GROWS_MODERN,
}
"""The world that is tried first."""


def _seeds_of(schedule: str) -> Callable[[Break], Break]:
    """Register a broken rule with the schedule of ``search`` that it is compared with. Any check may find it."""

    def register(mutation: Break) -> Break:
        TRANSACTIONAL.append(Mutation(mutation, "", schedule, 0))
        return mutation

    return register


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- producers and their partitions


@_seeds_of("producers")
def duplicates_are_not_recognised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_state.ProducerStateManager, "duplicate_of", _nothing)


@_seeds_of("producers")
def a_fifth_batch_is_not_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_state, "REMEMBERED_BATCHES", 4)


@_seeds_of("producers")
def sequences_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_state, "_follows", lambda entry, header: True)


@_seeds_of("producers")
def a_new_leader_knows_no_producers(patch: pytest.MonkeyPatch) -> None:
    right = partition.Partition._replay

    def wrong(self: Any, entry: Any) -> None:
        right(self, entry)
        self.producers.entries.clear()

    patch.setattr(partition.Partition, "_replay", wrong)


@_seeds_of("producers")
def a_batch_that_is_sent_again_is_numbered_anew(patch: pytest.MonkeyPatch) -> None:
    right = sequences.number

    def wrong(state: Any, queue: Any, batch: Any) -> None:
        if batch.attempts:
            batch.base_sequence = NO_SEQUENCE
        right(state, queue, batch)

    patch.setattr(sequences, "number", wrong)


@_seeds_of("producers")
def a_producer_sends_on_after_a_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequences, "may_send", lambda state, queue, batch: state.idempotence.producer != NO_PRODUCER)


# --- fences


@_seeds_of("transactions")
def a_successor_gets_the_epoch_of_its_predecessor(patch: pytest.MonkeyPatch) -> None:
    right = metadata.TransactionMetadata.prepare_increment

    def wrong(self: Any, epoch: int, *rest: Any) -> Any:
        return right(self, max(0, self.producer_epoch), *rest)

    patch.setattr(metadata.TransactionMetadata, "prepare_increment", wrong)


@_seeds_of("transactions")
def a_fenced_producer_may_add_partitions(patch: pytest.MonkeyPatch) -> None:
    right = producers.producer_error

    def wrong(found: Any, producer: Any) -> ErrorCode:
        error = right(found, producer)
        return ErrorCode.NONE if error is ErrorCode.PRODUCER_FENCED else error

    patch.setattr(shard, "producer_error", wrong)


@_seeds_of("transactions")
def a_fenced_producer_may_end_a_transaction(patch: pytest.MonkeyPatch) -> None:
    right = ending.end_with_epoch_bump

    def wrong(found: Any, producer_id: int, producer_epoch: int, commits: bool) -> Any:
        return right(found, producer_id, found.producer_epoch, commits)

    patch.setattr(shard, "end_with_epoch_bump", wrong)


@_seeds_of("transactions")
def batches_of_a_fenced_producer_are_taken(patch: pytest.MonkeyPatch) -> None:
    right = producer_state.ProducerStateManager.check

    def wrong(self: Any, header: Any) -> ErrorCode:
        error = right(self, header)
        return ErrorCode.NONE if error is ErrorCode.INVALID_PRODUCER_EPOCH else error

    patch.setattr(producer_state.ProducerStateManager, "check", wrong)
    patch.setattr(producer_state.ProducerStateManager, "is_fenced", lambda *_: False)
    patch.setattr(producer_state.ProducerStateManager, "check_transaction", lambda *_, **__: ErrorCode.NONE)


@_seeds_of("transactions")
def a_successor_does_not_end_the_open_transaction(patch: pytest.MonkeyPatch) -> None:
    right = shard.TransactionsShard.initialise

    def wrong(self: Any, transactional_id: str, *rest: Any) -> None:
        found = self.transactions.get(transactional_id)
        if found is not None and found.state is TransactionState.ONGOING and found.pending_state is None:
            found.state = TransactionState.EMPTY
            found.partitions.clear()
        right(self, transactional_id, *rest)

    patch.setattr(shard.TransactionsShard, "initialise", wrong)


# --- ends and markers


@_seeds_of("transactions")
def a_marker_has_the_epoch_of_the_batches(patch: pytest.MonkeyPatch) -> None:
    right = markers._marker

    def wrong(end: Any) -> Any:
        made = right(end)
        return made._replace(producer_epoch=made.producer_epoch - 1)

    patch.setattr(markers, "_marker", wrong)


@_seeds_of("transactions")
def markers_of_any_epoch_are_written(patch: pytest.MonkeyPatch) -> None:
    right = markers._marker
    patch.setattr(markers, "_marker", lambda end: right(end)._replace(producer_epoch=end.metadata.producer_epoch + 1))


@_seeds_of("transactions")
def an_end_raises_no_epoch(patch: pytest.MonkeyPatch) -> None:
    right = metadata.TransactionMetadata.prepare_end

    def wrong(self: Any, **how: Any) -> Any:
        return right(self, **{**how, "version": 0})

    patch.setattr(metadata.TransactionMetadata, "prepare_end", wrong)


@_seeds_of("transactions")
def a_transaction_is_complete_before_its_markers(patch: pytest.MonkeyPatch) -> None:
    right = markers.TransactionMarkers._send

    def wrong(self: Any, end: Any) -> None:
        end.shard.markers_written(end.metadata)
        end.shard = _Gone()
        right(self, end)

    class _Gone:
        is_led = False
        coordinator_epoch = 0

    patch.setattr(markers.TransactionMarkers, "_send", wrong)


@_seeds_of("transactions")
def an_end_is_answered_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    right = shard.TransactionsShard.end

    def wrong(self: Any, transactional_id: str, producer: Any, *, on_end: Any, **how: Any) -> None:
        found = self.transactions.get(transactional_id)
        if found is None or found.state is not TransactionState.ONGOING or found.pending_state is not None:
            right(self, transactional_id, producer, on_end=on_end, **how)
            return
        on_end(ErrorCode.NONE, producer._replace(epoch=producer.epoch + 1))
        right(self, transactional_id, producer, on_end=_nothing, **how)

    patch.setattr(shard.TransactionsShard, "end", wrong)


@_seeds_of("transactions")
def transactions_do_not_time_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cleanup.TransactionCleanup, "_abort_timed_out", _nothing)


# --- the transaction log


@_seeds_of("transactions")
def an_open_transaction_is_not_loaded(patch: pytest.MonkeyPatch) -> None:
    right = metadata.TransactionMetadata.loaded.__func__  # type: ignore[attr-defined]

    def wrong(kind: Any, transactional_id: str, value: Any) -> Any:
        found = right(kind, transactional_id, value)
        if found.state is TransactionState.ONGOING:
            found.state = TransactionState.EMPTY
            found.partitions.clear()
        return found

    patch.setattr(metadata.TransactionMetadata, "loaded", classmethod(wrong))


@_seeds_of("transactions")
def partitions_of_a_transaction_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    right = metadata.TransactionMetadata.loaded.__func__  # type: ignore[attr-defined]

    def wrong(kind: Any, transactional_id: str, value: Any) -> Any:
        found = right(kind, transactional_id, value)
        found.partitions.clear()
        return found

    patch.setattr(metadata.TransactionMetadata, "loaded", classmethod(wrong))


@_seeds_of("transactions")
def decided_transactions_get_no_markers_when_they_are_loaded(patch: pytest.MonkeyPatch) -> None:
    right = shard.TransactionsShard.load

    def wrong(self: Any) -> None:
        send, self._markers = self._markers, _Silent()
        try:
            right(self)
        finally:
            self._markers = send

    class _Silent:
        send = _nothing

    patch.setattr(shard.TransactionsShard, "load", wrong)


# --- readers of committed records


@_seeds_of("transactions")
def the_last_stable_offset_passes_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_state.ProducerStateManager, "first_unstable_offset", None)


@_seeds_of("transactions")
def aborted_transactions_are_not_listed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "_aborted", lambda *_: ())


# --- offsets in transactions


@_seeds_of("transactions")
def pending_offsets_are_visible(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, producer_id: int, where: Any, value: Any) -> None:
        self.store(where, value)

    patch.setattr(store.GroupOffsets, "hold", wrong)


@_seeds_of("transactions")
def offsets_of_an_aborted_transaction_count(patch: pytest.MonkeyPatch) -> None:
    right = store.GroupOffsets.end_transaction
    patch.setattr(store.GroupOffsets, "end_transaction", lambda self, producer_id, _: right(self, producer_id, True))


@_seeds_of("transactions")
def pending_offsets_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    right = loading.Replay._replay_offset

    def wrong(self: Any, record: Any) -> None:
        if record.producer_id == -1:
            right(self, record)

    patch.setattr(loading.Replay, "_replay_offset", wrong)


# --- topics that grow


@_seeds_of("faults")
def the_leader_does_not_see_that_a_topic_has_grown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MetadataSnapshot, "matches", lambda self, other: self.topics.keys() == other.topics.keys())


@_seeds_of("faults")
def an_assignment_counts_as_one_of_the_newest_topics(patch: pytest.MonkeyPatch) -> None:
    right = join_attempt._become_stable

    def wrong(state: Any, ctx: Any, attempt: Any, assignment: Any) -> None:
        right(state, ctx, attempt, assignment)
        join_attempt.follow_metadata(state, ctx)
        if state.join.assigned_from is not None:
            state.join.assigned_from = state.join.snapshot

    patch.setattr(join_attempt, "_become_stable", wrong)


@_seeds_of("consumer")
def a_consumer_group_does_not_see_that_a_topic_has_grown(patch: pytest.MonkeyPatch) -> None:
    right = group_metadata._topic_hash
    patch.setattr(group_metadata, "_topic_hash", lambda name, topic_id, _: right(name, topic_id, 1))
