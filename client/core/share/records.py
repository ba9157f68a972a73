"""Hands out acquired records, whole batches at a time, and decides about offsets that hold none.

Source: Kafka's ShareFetchCollector and ShareCompletedFetch.
"""

from __future__ import annotations

from rejoin.client.core.effects import PollReturned
from rejoin.client.core.errors import CorruptRecordError, RecordDeserializationError
from rejoin.client.core.fetch.buffer import deserialized
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import RecordRange
from rejoin.client.core.share.state import (
    AcquiredBatches,
    DeliveredRecords,
    DeliverySource,
    ShareConsumerState,
    share_of,
)
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType


def take(state: ConsumerState, ctx: StepContext, max_records: int) -> PollReturned:
    """Renewed records if there are any; else batches until there are ``max_records`` or more.

    Raises the error of a batch or record that cannot be read; an error behind good records waits for the next poll.
    """
    share = share_of(state)
    taken: dict[DeliverySource, list[ConsumerRecord]] = {}
    if share.renewed:
        renewed, share.renewed = share.renewed, {}
        taken = {source: [records[offset] for offset in sorted(records)] for source, records in renewed.items()}
    else:
        left = max_records
        while share.buffered and left > 0 and share.error is None:
            current = share.buffered[0]
            records = _next_records(state, ctx, current)
            if records is None:
                share.buffered.popleft()
            elif records:
                taken.setdefault(current.source, []).extend(records)
                left -= len(records)
    if not taken and share.error is not None:
        error, share.error = share.error, None
        raise error
    for source, records in taken.items():
        delivery = share.deliveries.setdefault(source, DeliveredRecords())
        delivery.records |= {record.offset: record for record in records}
    return PollReturned(
        tuple(
            RecordRange(*source.name, records[0].offset, records[-1].offset + 1) for source, records in taken.items()
        ),
        tuple(taken.values()),
    )


def _next_records(state: ConsumerState, ctx: StepContext, current: AcquiredBatches) -> list[ConsumerRecord] | None:
    """The acquired records of the next batch, none at the end."""
    share = share_of(state)
    if current.source.name not in state.subscription.assignment:
        # Differs: Kafka drops them, so that they stay locked.
        _decide(share, current, list(_acquired_before(current, None)), AcknowledgeType.RELEASE)
        return None
    try:
        batch = current.batches.take_batch()
    except CorruptRecordError as problem:
        current.batches.skip_damaged()
        damaged = list(_acquired_before(current, current.batches.next_offset))
        _decide(share, current, damaged, AcknowledgeType.REJECT)
        share.error = problem
        return []
    if not batch:
        _decide(share, current, list(_acquired_before(current, None)), AcknowledgeType.GAP)
        return None
    counts = _acquired_before(current, current.batches.next_offset)
    found: list[ConsumerRecord] = []
    for record in batch:
        count = counts.pop(record.offset, None)
        if count is None:
            continue
        try:
            found.append(deserialized(ctx, record)._replace(delivery_count=count))
        except RecordDeserializationError as problem:
            _decide(share, current, [record.offset], AcknowledgeType.RELEASE)
            share.error = share.error or problem
    _decide(share, current, list(counts), AcknowledgeType.GAP)
    return found


def _acquired_before(current: AcquiredBatches, end: int | None) -> dict[int, int]:
    """DeliveredRecords counts of the acquired offsets below ``end``, or of all that are left; they are taken out."""
    counts: dict[int, int] = {}
    acquired = current.acquired
    while acquired and (end is None or acquired[0][0] < end):
        first, last, count = acquired.popleft()
        if end is not None and last >= end:
            acquired.appendleft((end, last, count))
            last = end - 1
        counts |= dict.fromkeys(range(first, last + 1), count)
    return counts


def _decide(share: ShareConsumerState, current: AcquiredBatches, offsets: list[int], kind: int) -> None:
    if offsets:
        share.pending.setdefault(current.source, {}).update(dict.fromkeys(offsets, int(kind)))
