"""Ends transactions over pending offsets. Kafka: OffsetMetadataManager.replayEndTransactionMarker."""

from __future__ import annotations

from rejoin.coordinator.core.offsets.store import OffsetStore, committed_offset
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import TransactionEnded
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.unvalidated import unvalidated


def end_transaction(ctx: StepContext, store: OffsetStore, marker: TransactionMarker) -> None:
    """Make a producer's offsets visible, or drop them, in every group of a shard."""
    for group_id, group_offsets in store.items():
        if marker.producer_id not in group_offsets.pending:
            continue
        offsets = group_offsets.end_transaction(marker.producer_id, marker.committed)
        if offsets:
            ctx.emit(
                unvalidated(
                    TransactionEnded,
                    group_id=group_id,
                    producer_id=marker.producer_id,
                    committed=marker.committed,
                    offsets=[committed_offset(partition, value) for partition, value in offsets.items()],
                )
            )
