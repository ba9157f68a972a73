"""What transactions promise: all or nothing, once and in order, nothing of fenced producers, and an end for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.simulation.actors.transactional_transformers import TransactionalTransformActor, TransactionOutcome
from rejoin.simulation.kernel import Millis
from rejoin.simulation.output.transformed_records import visible_works
from rejoin.simulation.search.observations import Observations, ObservedStep

FIRST_WHERE_ALL_END: Final = 2
"""From this transaction.version on no transaction can be left open (KIP-890)."""

SETTLED_MS: Final[Millis] = 30_000
"""A transaction may be open that is this young at the end, beside its timeout: aborts are due every 10 s."""


def a_last_stable_offset_passes_an_open_transaction(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A leader says that records are decided, which are part of an open transaction."""
    transactions = observed.transactions
    if transactions is None:
        return
    for _, response in step.replies(FetchResponse):
        for topic in response.responses:
            for found in topic.partitions:
                log = transactions.log_of(topic.topic_id, found.partition_index)
                first = None if log is None else transactions.first_open(log)
                if first is not None and found.last_stable_offset > first:
                    yield f"{log}: last stable offset {found.last_stable_offset}, a transaction is open from {first} on"


def a_transaction_is_visible_in_part(observed: Observations) -> Iterator[str]:
    """A reader of committed records got some records of a transaction, or offsets were committed without them."""
    transactions = observed.transactions
    if transactions is None:
        return
    for reader in observed.simulation.readers.values():
        if not reader.reads_committed:
            continue
        seen, unended = visible_works(observed.simulation, reader)
        for consumer in observed.simulation.consumers.values():
            if isinstance(consumer, TransactionalTransformActor):
                for name, transaction in consumer.counts.transactions.items():
                    size = sum(taken.end - taken.start for taken in transaction.ranges)
                    wanted = {
                        TransactionOutcome.COMMITTED: (size,),
                        TransactionOutcome.ABORTED: (0,),
                        TransactionOutcome.OPEN: (0, size),
                    }[transaction.outcome]
                    if seen[name] not in wanted and name not in unended:
                        yield f"{name}: {seen[name]} of {size} records are visible, {transaction.outcome.value}"
    for summary in transactions.committed_only():
        if summary.lost or summary.twice:
            yield f"{summary.name}: {summary.lost} records lost and {summary.twice} too many, of {summary.went_in}"


def a_record_of_an_aborted_transaction_is_read(observed: Observations) -> Iterator[str]:
    """A reader of committed records got one."""
    if observed.transactions is not None:
        for summary in observed.transactions.committed_only():
            if summary.aborted:
                yield f"{summary.name}: {summary.aborted} records of aborted transactions"


def a_fenced_producers_record_is_visible(observed: Observations) -> Iterator[str]:
    """A reader of committed records got a record that was written or committed after its producer was fenced."""
    transactions = observed.transactions
    if transactions is None:
        return
    fenced = {
        (partition, offset)
        for partition, batches in transactions.batches.items()
        for batch in batches
        if transactions.is_fenced(batch)
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }
    for reader in observed.simulation.readers.values():
        found = [read for read in reader.records if reader.reads_committed and (read.partition, read.offset) in fenced]
        if found:
            yield f"{reader.name}: {len(found)} records, the first at {found[0].partition} {found[0].offset}"


def a_transaction_never_ends(observed: Observations) -> Iterator[str]:
    """Long after its timeout a transaction is open in a log, and its readers stand still."""
    transactions = observed.transactions
    simulation = observed.simulation
    if transactions is None or simulation.cluster.settings.transaction_version < FIRST_WHERE_ALL_END:
        return
    transforms = [group.transform for group in simulation.scenario.groups.values() if group.transform is not None]
    patience = SETTLED_MS + max(each.transaction_timeout for each in transforms)
    for partition, batch in transactions.open_batches():
        if batch.written_at + patience < simulation.world.now:
            yield f"{partition}: open from {batch.base_offset} on, since {batch.written_at} ms"


def a_transformed_record_overtakes_another(observed: Observations) -> Iterator[str]:
    """A reader of committed records got records of one partition in another order."""
    if observed.transactions is not None:
        for summary in observed.transactions.committed_only():
            if summary.out_of_order:
                yield f"{summary.name}: {summary.out_of_order} records out of order"
