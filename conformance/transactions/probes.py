"""Requests for each state of a transaction: right, late, early, of others, in several versions. Rows of the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from conformance.participants.looks import MAX_TIMESTAMP, Looks
from conformance.participants.producer import Producer
from conformance.transactions.states import MADE_UP_ID, markers
from rejoin.protocol.errors import ErrorCode

Probe: TypeAlias = Callable[[Producer, int], Awaitable[Any]]
"""One request, or a few, of a producer that has written to one partition."""

MADE_UP_TOPIC: Final = "nowhere"


def _init(version: int = 5, expected: int | None = None, producer_id: int | None = None, **over: Any) -> Probe:
    async def probe(producer: Producer, _: int) -> None:
        if expected is None:
            known = None
        else:
            known = (producer.producer_id if producer_id is None else producer_id, producer.epoch + expected)
        answer = await producer.init(known, version, **over)
        if answer["errorCode"] == ErrorCode.CONCURRENT_TRANSACTIONS:
            await producer.play.settle(str(producer.transactional_id))

    return probe


async def _init_twice(producer: Producer, _: int) -> None:
    await producer.init()
    await producer.play.settle(str(producer.transactional_id))
    await producer.init()


async def _init_expected_twice(producer: Producer, _: int) -> None:
    known = producer.known
    await producer.init(known)
    await producer.play.settle(str(producer.transactional_id))
    await producer.init(known)
    await producer.init(known)


INIT: Final[dict[str, Probe]] = {
    "v0": _init(0),
    "v2": _init(2),
    "v3-expected": _init(3, 0),
    "v3-older": _init(3, -1),
    "v5-expected": _init(5, 0),
    "v5-older": _init(5, -1),
    "v4-newer": _init(4, 1),
    "v5-other-id": _init(5, 0, MADE_UP_ID + 7),
    "id-without-epoch": _init(5, producerId=5),
    "epoch-without-id": _init(5, producerEpoch=5),
    "no-time": _init(5, timeout=0),
    "too-long": _init(5, timeout=900_001),
    "twice": _init_twice,
    "expected-twice": _init_expected_twice,
}


def _add(version: int = 3, epoch: int = 0, producer_id: int | None = None, **over: Any) -> Probe:
    async def probe(producer: Producer, partition: int) -> None:
        identity = {
            "v3AndBelowProducerId": producer.producer_id if producer_id is None else producer_id,
            "v3AndBelowProducerEpoch": producer.epoch + epoch,
        }
        await producer.add(partition, partition + 1, version=version, **(identity | over))

    return probe


def _add_as_broker(version: int = 5, epoch: int = 0, *, verify: bool = False, **over: Any) -> Probe:
    async def probe(producer: Producer, partition: int) -> None:
        identity = {"producerEpoch": producer.epoch + epoch}
        await producer.add_as_broker(partition, partition + 1, verify=verify, version=version, **(identity | over))

    return probe


async def _add_unknown(producer: Producer, partition: int) -> None:
    topics = [
        {"name": producer.play.topic, "partitions": [partition, 77]},
        {"name": MADE_UP_TOPIC, "partitions": [0]},
    ]
    await producer.add(v3AndBelowTopics=topics)


ADD_PARTITIONS: Final[dict[str, Probe]] = {
    "v0": _add(0),
    "v1-older": _add(1, -1),
    "v2-older": _add(2, -1),
    "v3-newer": _add(3, 1),
    "v3-other-id": _add(3, 0, MADE_UP_ID + 7),
    "v3": _add(3),
    "v3-nothing": _add(3, v3AndBelowTopics=[]),
    "v3-no-id": _add(3, v3AndBelowTransactionalId=""),
    "v3-unknown": _add_unknown,
    "v4-verify": _add_as_broker(4, verify=True),
    "v5-verify-older": _add_as_broker(5, -1, verify=True),
    "v5": _add_as_broker(5),
    "v5-newer": _add_as_broker(5, 1),
    "v4-other-id": _add_as_broker(4, producerId=MADE_UP_ID + 7),
}


def _add_offsets(version: int = 4, epoch: int = 0, **over: Any) -> Probe:
    async def probe(producer: Producer, _: int) -> None:
        await producer.add_offsets(version, **({"producerEpoch": producer.epoch + epoch} | over))

    return probe


ADD_OFFSETS: Final[dict[str, Probe]] = {
    "v0": _add_offsets(0),
    "v1-older": _add_offsets(1, -1),
    "v2-older": _add_offsets(2, -1),
    "v3-newer": _add_offsets(3, 1),
    "v4-other-id": _add_offsets(4, producerId=MADE_UP_ID + 7),
    "v4": _add_offsets(4),
    "v4-no-group": _add_offsets(4, groupId=""),
    "v4-no-id": _add_offsets(4, transactionalId=""),
}


def _end(version: int, *, commit: bool, epoch: int = 0, **over: Any) -> Probe:
    async def probe(producer: Producer, _: int) -> None:
        await producer.end(commit, version, waits=False, **({"producerEpoch": producer.epoch + epoch} | over))
        await producer.play.settle(str(producer.transactional_id))

    return probe


async def _end_twice(producer: Producer, _: int) -> None:
    identity = {"producerId": producer.producer_id, "producerEpoch": producer.epoch}
    for commit in (False, False, True):
        await producer.end(commit, 5, waits=False, **identity)
        await producer.play.settle(str(producer.transactional_id))


END: Final[dict[str, Probe]] = {
    "v0-commit": _end(0, commit=True),
    "v1-abort-older": _end(1, commit=False, epoch=-1),
    "v2-abort-older": _end(2, commit=False, epoch=-1),
    "v4-commit": _end(4, commit=True),
    "v4-abort": _end(4, commit=False),
    "v3-abort-newer": _end(3, commit=False, epoch=1),
    "v5-commit": _end(5, commit=True),
    "v5-abort": _end(5, commit=False),
    "v5-commit-older": _end(5, commit=True, epoch=-1),
    "v5-abort-older": _end(5, commit=False, epoch=-1),
    "v5-abort-newer": _end(5, commit=False, epoch=1),
    "v5-other-id": _end(5, commit=True, producerId=MADE_UP_ID + 7),
    "v4-other-id": _end(4, commit=True, producerId=MADE_UP_ID + 7),
    "v5-no-id": _end(5, commit=True, transactionalId=""),
    "v5-abort-twice": _end_twice,
}


def _produce(version: int, epoch: int = 0, further: int = 0, **over: Any) -> Probe:
    async def probe(producer: Producer, partition: int) -> None:
        await producer.produce(partition + further, version=version, epoch=producer.epoch + epoch, **over)

    return probe


async def _produce_again(producer: Producer, partition: int) -> None:
    """One batch, twice."""
    await producer.produce(partition, version=13)
    await producer.produce(partition, version=13, sequence=max(0, producer.sequences.get(partition, 0) - 1))


PRODUCE: Final[dict[str, Probe]] = {
    "v9": _produce(9),
    "v11": _produce(11),
    "v11-elsewhere": _produce(11, further=1),
    "v10-elsewhere": _produce(10, further=1),
    "v12": _produce(12),
    "v13": _produce(13),
    "v13-elsewhere": _produce(13, further=1),
    "v13-older": _produce(13, -1),
    "v11-older": _produce(11, -1),
    "v13-newer": _produce(13, 1),
    "v11-newer": _produce(11, 1),
    "v13-gap": _produce(13, sequence=7),
    "v13-gap-elsewhere": _produce(13, sequence=7, further=1),
    "v13-other-id": _produce(13, producer_id=MADE_UP_ID + 7),
    "v13-other-transaction": _produce(13, transactional_id="tx-of-others"),
    "v13-no-id": _produce(13, transactional_id=None),
    "v13-plain": _produce(13, attributes=0),
    "v13-again": _produce_again,
}


def _offsets(version: int, epoch: int = 0, **over: Any) -> Probe:
    async def probe(producer: Producer, partition: int) -> None:
        await producer.offsets({partition: 9}, version, **({"producerEpoch": producer.epoch + epoch} | over))
        looks = Looks(producer.play)
        await looks.offsets(partition)
        await looks.offsets(partition, stable=True)

    return probe


async def _offsets_unknown(producer: Producer, partition: int) -> None:
    offset = [{"partitionIndex": partition, "committedOffset": 3, "committedMetadata": ""}]
    elsewhere = [{"partitionIndex": 77, "committedOffset": 3, "committedMetadata": ""}]
    topics = [
        {"name": producer.play.topic, "partitions": offset + elsewhere},
        {"name": "nowhere", "partitions": offset},
    ]
    await producer.offsets(version=5, topics=topics)


async def _offsets_after_adding(producer: Producer, partition: int) -> None:
    await producer.add_offsets()
    await producer.offsets({partition: 4}, 3)


OFFSETS: Final[dict[str, Probe]] = {
    "v0": _offsets(0),
    "v2": _offsets(2),
    "v4": _offsets(4),
    "v5": _offsets(5),
    "v6": _offsets(6),
    "v6-older": _offsets(6, -1),
    "v4-newer": _offsets(4, 1),
    "v6-newer": _offsets(6, 1),
    "v6-other-id": _offsets(6, producerId=MADE_UP_ID + 7),
    "v6-generation": _offsets(6, generationIdOrMemberEpoch=1, memberId="a"),
    "v6-member": _offsets(6, memberId="a"),
    "v6-instance": _offsets(6, memberId="a", groupInstanceId="one"),
    "v5-generation": _offsets(5, generationIdOrMemberEpoch=1),
    "v6-no-group": _offsets(6, groupId=""),
    "v6-metadata": _offsets(6, metadata="m" * 4_097),
    "v5-unknown": _offsets_unknown,
    "v3-added": _offsets_after_adding,
}


def _marker(by: int = 0, **over: Any) -> Probe:
    async def probe(producer: Producer, partition: int) -> None:
        await markers(producer, partition, partition + 1, **({"epoch": producer.epoch + by} | over))
        await Looks(producer.play).producers(partition)

    return probe


async def _marker_then_record(producer: Producer, partition: int) -> None:
    """An administrator aborts, and the producer goes on."""
    await markers(producer, partition, transaction_version=0)
    await producer.produce(partition)
    await producer.commit(waits=False)
    await producer.play.settle(str(producer.transactional_id))


MARKERS: Final[dict[str, Probe]] = {
    "v1-abort": _marker(version=1),
    "v1-older": _marker(version=1, by=-1),
    "v2-0": _marker(transaction_version=0, commit=True),
    "v2-1-newer": _marker(transaction_version=1, by=1),
    "v2-2": _marker(),
    "v2-2-newer": _marker(by=1, commit=True),
    "v2-9-newer": _marker(by=1, transaction_version=9),
    "coordinator-before": _marker(coordinator_epoch=-1, transaction_version=0),
    "coordinator-later": _marker(coordinator_epoch=9, transaction_version=0),
    "other-id": _marker(producer_id=MADE_UP_ID + 7, epoch=3),
    "no-producer": _marker(producer_id=-1),
    "no-epoch": _marker(epoch=-1),
    "last-epoch": _marker(epoch=32_767),
    "unknown": _marker(topic=MADE_UP_TOPIC),
    "then-record": _marker_then_record,
}


async def _describe(producer: Producer, _: int) -> None:
    looks, own = Looks(producer.play), str(producer.transactional_id)
    await looks.transactions(own, "tx-of-nobody", "")
    for name in ("Empty", "Ongoing", "PrepareAbort", "CompleteCommit", "Dead", "Nonsense"):
        await looks.listed(stateFilters=[name], transactionalIdPattern=own)
    await looks.listed(stateFilters=["Ongoing", "Nonsense", "CompleteAbort"], transactionalIdPattern=own)
    await looks.listed(1, producerIdFilters=[producer.producer_id], durationFilter=3_600_000)
    await looks.listed(1, producerIdFilters=[producer.producer_id], durationFilter=0)
    await looks.listed(0, producerIdFilters=[producer.producer_id, MADE_UP_ID])
    await looks.listed(2, transactionalIdPattern=own[:-1])
    await looks.listed(2, transactionalIdPattern="tx-(")


async def _read(producer: Producer, partition: int) -> None:
    """Beside records of another transaction that is decided, and of no transaction."""
    other = Producer(producer.play, "o", f"{producer.transactional_id}-o", producer.version)
    await other.init()
    await other.begin(partition)
    await other.abort()
    await other.produce(partition, transactional_id=None, attributes=0, producer_id=-1, epoch=-1, sequence=-1)
    looks = Looks(producer.play)
    for isolation in (0, 1):
        for version in (4, 12, 18):
            await looks.fetch(partition, isolation=isolation, version=version)
        await looks.fetch(partition, isolation=isolation, at=1)
        await looks.fetch(partition, isolation=isolation, at=2, max_bytes=10)
        await looks.ends(partition, isolation=isolation)
        await looks.ends(partition, isolation=isolation, timestamp=MAX_TIMESTAMP)
        await looks.ends(partition, isolation=isolation, timestamp=1_700_000_000_000)
    await looks.ends(partition, version=1)
    await looks.ends(partition, version=2)


async def _clean(producer: Producer, partition: int) -> None:
    """Records and offsets are deleted within a transaction, and the topic's partition still gets its marker."""
    play, looks = producer.play, Looks(producer.play)
    await producer.offsets({partition: 3})
    topics = [{"name": play.topic, "partitions": [{"partitionIndex": partition}]}]
    await looks.ask("OffsetDelete", {"groupId": play.group, "topics": topics})
    await looks.offsets(partition, stable=True)
    await producer.offsets({partition: 4})
    await looks.ask("DeleteGroups", {"groupsNames": [play.group]}, 2)
    await looks.offsets(partition, stable=True)
    deleted = [{"name": play.topic, "partitions": [{"partitionIndex": partition, "offset": -1}]}]
    await looks.ask("DeleteRecords", {"topics": deleted, "timeoutMs": 5_000})
    await looks.fetch(partition, isolation=1, at=1)
    await looks.ends(partition)
    await producer.produce(partition)
    await producer.commit(waits=False)
    await play.settle(str(producer.transactional_id))
    await looks.offsets(partition)
    await looks.fetch(partition, isolation=1, at=1)


REQUESTS: Final[dict[str, dict[str, Probe]]] = {
    "init": INIT,
    "add-partitions": ADD_PARTITIONS,
    "add-offsets": ADD_OFFSETS,
    "end": END,
    "produce": PRODUCE,
    "offsets": OFFSETS,
    "markers": MARKERS,
    "describe": {"all": _describe},
    "read": {"all": _read},
    "clean": {"all": _clean},
}
"""The probes of each kind of request. Each is made with a transactional id and a partition of its own."""
