"""Events of transactions: what their coordinator decided, and what their partitions have in their logs.

A transaction is known by its transactional id at the coordinator, and by producer id and epoch in a partition. The two
learn of each other late, so each has events of its own. Offsets that a transaction commits are events of their groups
(``journal.events.coordinator``).
"""

from __future__ import annotations

from typing import Literal

from rejoin.journal.events.base import Event, Long, PartitionsByTopic

EndedBy = Literal["client", "timeout", "fencing"]
"""Who ended a transaction: its client with EndTxn, transaction.timeout.ms, or another InitProducerId of its id."""


class ProducerEvent(Event):
    """An event about a producer. There is no transactional id where only a partition knows of it."""

    transactional_id: str | None
    producer_id: Long
    producer_epoch: int


class ProducerIdInitialized(ProducerEvent):
    """A producer may write with this id and epoch; older epochs of its transactional id are fenced.

    A producer without transactional id is idempotent only. ``previous_producer_id`` had no epochs left.
    """

    transaction_timeout_ms: int | None
    previous_producer_id: Long | None


class TransactionStarted(ProducerEvent):
    """The coordinator knows the first partitions of a transaction: it is Ongoing, and its timeout runs."""

    partitions: PartitionsByTopic
    transaction_timeout_ms: int


class PartitionsAddedToTxn(ProducerEvent):
    """More partitions are part of a transaction. A partition of ``__consumer_offsets`` is there for offsets."""

    partitions: PartitionsByTopic


class TransactionPrepared(ProducerEvent):
    """The end is decided: PrepareCommit or PrepareAbort. The epoch is that of the markers.

    With version 2, and where a producer is fenced, it is above that of the records. ``open_ms``: since the start; 0
    where there was none.
    """

    committed: bool
    ended_by: EndedBy | None
    transaction_version: int
    partition_count: int
    open_ms: int


class TransactionCompleted(ProducerEvent):
    """Every partition has its marker: CompleteCommit or CompleteAbort.

    ``markers_ms``: since the end was decided. ``ended_by`` is not known after a failover.
    """

    committed: bool
    ended_by: EndedBy | None
    open_ms: int
    markers_ms: int


class TransactionalIdExpired(ProducerEvent):
    """A transactional id was unused for ``transactional.id.expiration.ms``, and is forgotten."""


class ProducerFenced(ProducerEvent):
    """A request came with an epoch below the current one: its producer was replaced, or its transaction timed out.

    A topic and partition are there where the partition refused it.
    """

    current_epoch: int
    api: str
    error: str
    topic: str | None
    partition: int | None


class TransactionsLoaded(Event):
    """The transactional ids of a partition of ``__transaction_state`` were read by a new coordinator."""

    topic: str
    partition: int
    coordinator_epoch: int
    transactional_ids: int


class TransactionalLogEvent(Event):
    """An event about a transaction in the log of a partition, with the ends that readers see after it."""

    topic: str
    partition: int
    producer_id: Long
    producer_epoch: int
    first_offset: Long | None
    last_stable_offset: Long | None
    high_watermark: Long | None
    end_offset: Long | None


class TransactionOpened(TransactionalLogEvent):
    """The first batch of a transaction is in the log."""


class TransactionMarkerWritten(TransactionalLogEvent):
    """A marker is in the log. There is no first offset where no transaction was open.

    Partitions of ``__consumer_offsets`` have no ends here.
    """

    committed: bool
    coordinator_epoch: int


class LastStableOffsetHeld(TransactionalLogEvent):
    """The log grows, and its oldest open transaction holds the last stable offset where it is.

    Emitted while records are appended, every ten seconds at most.
    """

    held_ms: int
