"""States of a transactional id, and how a producer gets there. Each is a column of the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from conformance.participants.producer import Producer
from rejoin.conform.player.play import Play

State: TypeAlias = Callable[[Producer, int], Awaitable[None]]
"""Brings a producer into a state, with its records in one partition."""

MADE_UP_ID: Final = 900_001


async def unknown(producer: Producer, partition: int) -> None:
    """The coordinator does not know the id."""
    producer.producer_id, producer.epoch = MADE_UP_ID, 0


async def empty(producer: Producer, partition: int) -> None:
    await producer.init()


async def ongoing(producer: Producer, partition: int) -> None:
    await producer.init()
    await producer.begin(partition)


async def ongoing_without_records(producer: Producer, partition: int) -> None:
    """The coordinator has the partition, and nothing was written."""
    await producer.init()
    await producer.add(partition)


async def ongoing_without_partitions(producer: Producer, partition: int) -> None:
    await producer.init()
    await producer.add(v3AndBelowTopics=[])


async def ongoing_with_offsets(producer: Producer, partition: int) -> None:
    await producer.init()
    if producer.version < 2:
        await producer.add_offsets()
    await producer.offsets({partition: 5})


async def complete_commit(producer: Producer, partition: int) -> None:
    await ongoing(producer, partition)
    await producer.commit()


async def complete_abort(producer: Producer, partition: int) -> None:
    await ongoing(producer, partition)
    await producer.abort()


async def second_ongoing(producer: Producer, partition: int) -> None:
    """After a transaction that was aborted."""
    await complete_abort(producer, partition)
    await producer.begin(partition)


async def complete_commit_unbumped(producer: Producer, partition: int) -> None:
    """Ended by a version that does not raise the epoch."""
    await ongoing(producer, partition)
    await producer.commit(version=4)


async def complete_abort_unbumped(producer: Producer, partition: int) -> None:
    await ongoing(producer, partition)
    await producer.abort(version=4)


async def prepare_commit(producer: Producer, partition: int) -> None:
    """The marker is refused, so that the coordinator never completes the transaction."""
    await _refuse_marker(producer, partition)
    await producer.commit(waits=False)
    await producer.play.settle(str(producer.transactional_id))


async def prepare_abort(producer: Producer, partition: int) -> None:
    await _refuse_marker(producer, partition)
    await producer.abort(waits=False)
    await producer.play.settle(str(producer.transactional_id))


async def _refuse_marker(producer: Producer, partition: int) -> None:
    """An administrator ends the transaction in the partition with an epoch that the coordinator is below."""
    await ongoing(producer, partition)
    await markers(producer, partition, epoch=100)


async def fenced(producer: Producer, partition: int) -> None:
    """Another one with the same id has taken over; nothing was open."""
    await complete_commit(producer, partition)
    await Producer(producer.play, "q", producer.transactional_id, producer.version).init()


async def fenced_while_ongoing(producer: Producer, partition: int) -> None:
    """Another one has asked once, and does not come back."""
    await ongoing(producer, partition)
    await Producer(producer.play, "q", producer.transactional_id, producer.version).init()
    await producer.play.until_complete(producer.transactional_id)


async def renewed(producer: Producer, partition: int) -> None:
    """The producer has recovered from an error by itself."""
    await complete_abort(producer, partition)
    await producer.init(producer.known)


STATES: Final[dict[str, State]] = {
    "unknown": unknown,
    "empty": empty,
    "ongoing": ongoing,
    "ongoing-without-records": ongoing_without_records,
    "ongoing-without-partitions": ongoing_without_partitions,
    "ongoing-with-offsets": ongoing_with_offsets,
    "second-ongoing": second_ongoing,
    "prepare-commit": prepare_commit,
    "prepare-abort": prepare_abort,
    "complete-commit": complete_commit,
    "complete-abort": complete_abort,
    "complete-commit-unbumped": complete_commit_unbumped,
    "complete-abort-unbumped": complete_abort_unbumped,
    "fenced": fenced,
    "fenced-while-ongoing": fenced_while_ongoing,
    "renewed": renewed,
}


SHORT_MS: Final = 300
"""A timeout that has passed when a script has waited for it."""


async def timed_out(producer: Producer, partition: int) -> None:
    """Aborted by the coordinator, within the time that the script waits from now on."""
    await producer.init(timeout=SHORT_MS)
    await producer.begin(partition)


async def timed_out_without_records(producer: Producer, partition: int) -> None:
    await producer.init(timeout=SHORT_MS)
    await producer.add(partition)


async def timed_out_with_offsets(producer: Producer, partition: int) -> None:
    await producer.init(timeout=SHORT_MS)
    await producer.offsets({partition: 5})


async def timed_out_unbumped(producer: Producer, partition: int) -> None:
    """Of a client that speaks an older version."""
    await producer.init(timeout=SHORT_MS)
    await producer.add(partition)
    await producer.produce(partition, version=11)


TIMED_OUT: Final[dict[str, State]] = {
    "timed-out": timed_out,
    "timed-out-without-records": timed_out_without_records,
    "timed-out-with-offsets": timed_out_with_offsets,
    "timed-out-unbumped": timed_out_unbumped,
}
EXPIRED: Final[dict[str, State]] = {
    "expired": empty,
    "expired-after-commit": complete_commit,
    "not-expired-while-ongoing": ongoing,
}
"""States that the coordinator forgets, or does not, while the script waits."""


async def markers(
    producer: Producer,
    *partitions: int,
    epoch: int | None = None,
    commit: bool = False,
    version: int = 2,
    transaction_version: int = 2,
    coordinator_epoch: int = 0,
    producer_id: int | None = None,
    topic: str | None = None,
) -> None:
    """Markers by an administrator."""
    play: Play = producer.play
    marker = {
        "producerId": producer.producer_id if producer_id is None else producer_id,
        "producerEpoch": producer.epoch if epoch is None else epoch,
        "transactionResult": commit,
        "topics": [{"name": topic or play.topic, "partitionIndexes": list(partitions)}],
        "coordinatorEpoch": coordinator_epoch,
    } | ({"transactionVersion": transaction_version} if version >= 2 else {})
    await play.ask("admin", "WriteTxnMarkers", {"markers": [marker]}, version, broker=producer.broker)
