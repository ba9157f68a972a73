"""Promises of transactions: all or nothing, once and in order, nothing of fenced producers, and an end for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.transactional_transformers import (
    TransactionalTransformActor,
    TransactionOutcome,
    UserTransaction,
)
from rejoin.simulation.kernel import Millis
from rejoin.simulation.output.transformed_records import visible_works
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of

FIRST_WHERE_ALL_END: Final = 2
"""From this transaction.version on no transaction can be left open (KIP-890)."""

READ_COMMITTED: Final = 1

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


def a_listed_end_passes_an_open_transaction(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """ListOffsets gives a reader of committed records an end that lies behind the beginning of an open transaction."""
    transactions = observed.transactions
    if transactions is None:
        return
    for exchange, response in step.replies(ListOffsetsResponse):
        request = request_of(exchange, ListOffsetsRequest)
        if request.isolation_level != READ_COMMITTED:
            continue
        for topic in response.topics:
            for found in topic.partitions:
                first = transactions.first_open_of(TopicPartition(topic.name, found.partition_index))
                if first is not None and found.offset > first:
                    where = f"{topic.name}-{found.partition_index}"
                    yield f"{where}: the end is {found.offset}, a transaction is open from {first} on"


def a_transaction_is_read_before_it_is_whole(observed: Observations) -> Iterator[str]:
    """A reader of committed records got some of a transaction, of which others are not in the logs, or are aborted.

    This holds at every instant: what is read was decided, and before that all of it was stored. A reader may find the
    rest later, as each partition gets its marker by itself.
    """
    transactions = observed.transactions
    if transactions is None:
        return
    sizes = dict(_transactions(observed))
    for reader in observed.simulation.readers.values():
        if reader.reads_committed:
            for name in transactions.newly_read(reader):
                there, size = transactions.logged[name], sizes[name][1]
                # Where all is aborted another check says so.
                if 0 < there != size:
                    yield f"{name}: {there} of {size} records can be committed"


def a_successor_gets_an_epoch_that_was_given_before(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """InitProducerId gives a process that begins an epoch that the process before it may have."""
    transactions = observed.transactions
    if transactions is None:
        return
    for exchange, response in step.replies(InitProducerIdResponse):
        request = request_of(exchange, InitProducerIdRequest)
        is_new = request.transactional_id is not None and request.producer_id < 0
        if is_new and response.error_code is ErrorCode.NONE:
            given = (response.producer_id, response.producer_epoch)
            if transactions.has_successor(response.producer_id, response.producer_epoch - 1):
                yield f"{request.transactional_id}: producer {given[0]}, epoch {given[1]}"


def a_fenced_producer_ends_a_transaction(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """EndTxn succeeds with an epoch older than that of a successor."""
    transactions = observed.transactions
    if transactions is None:
        return
    for exchange, response in step.replies(EndTxnResponse):
        request = request_of(exchange, EndTxnRequest)
        epoch = request.producer_epoch
        if response.error_code is ErrorCode.NONE and transactions.has_successor(request.producer_id, epoch):
            yield f"{request.transactional_id}: producer {request.producer_id}, epoch {epoch}"


def an_end_is_answered_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """EndTxn succeeds, and the transaction log has no such decision."""
    log = observed.transaction_log
    if log is None:
        return
    for exchange, response in step.replies(EndTxnResponse):
        request = request_of(exchange, EndTxnRequest)
        if response.error_code is ErrorCode.NONE:
            producer_id, epoch = request.producer_id, request.producer_epoch
            if not log.was_decided(producer_id, epoch, request.committed):
                yield f"{request.transactional_id}: producer {producer_id}, epoch {epoch}"


def a_fenced_producer_writes(observed: Observations) -> Iterator[str]:
    """A batch of a transaction was written with an epoch older than that of a successor."""
    if observed.transactions is not None and _all_end(observed):
        yield from observed.transactions.written_by_fenced


def a_marker_was_never_decided(observed: Observations) -> Iterator[str]:
    """A log of records or of offsets has a marker, and the transaction log no such decision for its epoch."""
    if observed.transaction_log is not None:
        yield from observed.transaction_log.without_decision


def a_complete_transaction_is_open_in_a_log(observed: Observations) -> Iterator[str]:
    """The transaction log says that a transaction is complete, and a log of records or of offsets has no marker."""
    if observed.transaction_log is not None and _all_end(observed):
        yield from observed.transaction_log.left_open


def _all_end(observed: Observations) -> bool:
    return observed.simulation.cluster.settings.transaction_version >= FIRST_WHERE_ALL_END


def _transactions(observed: Observations) -> Iterator[tuple[str, tuple[UserTransaction, int]]]:
    """Each transaction by the name in its records, and how many records it has."""
    for consumer in observed.simulation.consumers.values():
        if isinstance(consumer, TransactionalTransformActor):
            for name, transaction in consumer.counts.transactions.items():
                size = sum(taken.end - taken.start for taken in transaction.ranges)
                yield name, (transaction, size * consumer.transform.outputs)


def a_transaction_is_visible_in_part(observed: Observations) -> Iterator[str]:
    """A reader of committed records got some records of a transaction, or offsets were committed without them."""
    transactions = observed.transactions
    if transactions is None:
        return
    for reader in observed.simulation.readers.values():
        if not reader.reads_committed:
            continue
        seen, unended = visible_works(observed.simulation, reader)
        for name, (transaction, size) in _transactions(observed):
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
    if transactions is None or not _all_end(observed):
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
