"""Several transactions in one partition: each order of their ends, and each outcome of them, as readers see it."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator

from conformance.participants.looks import MAX_TIMESTAMP, Looks
from conformance.participants.producer import Producer
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

NAMES = ("a", "b", "c")


async def _producers(play: Play, version: int) -> dict[str, Producer]:
    producers = {name: Producer(play, name, f"{play.transactional_id}-{name}", version) for name in NAMES}
    for producer in producers.values():
        await producer.init()
    return producers


def _ends_in_order(order: tuple[str, ...], outcomes: tuple[bool, ...], version: int) -> Script:
    """Three transactions, with plain records between them; ``outcomes`` says which commit."""

    async def run(play: Play) -> None:
        looks, producers = Looks(play), await _producers(play, version)
        for name in NAMES:
            await producers[name].begin(0)
            await producers[name].produce(0, transactional_id=None, attributes=0, producer_id=-1, epoch=-1, sequence=-1)
        await producers[NAMES[0]].produce(0, 2)
        for name, commits in zip(order, outcomes, strict=True):
            await producers[name].end(commits)
            await looks.ends(0)
            await looks.ends(0, timestamp=MAX_TIMESTAMP)
            await looks.fetch(0, isolation=1)
        end = 6 + 2 + len(order)
        for offset in range(end + 1):
            await looks.fetch(0, at=offset, isolation=1, max_bytes=100)
        await looks.fetch(0, isolation=0)
        await looks.producers(0)

    words = [f"{name}-{'commits' if commits else 'aborts'}" for name, commits in zip(order, outcomes, strict=True)]
    return Script(f"ends-{'-'.join(words)}-{version}", run, partitions=1)


def orders() -> Iterator[Script]:
    """Each order with one outcome, so that each outcome comes up."""
    outcomes = list(itertools.product((True, False), repeat=3))
    for number, order in enumerate(itertools.permutations(NAMES)):
        yield _ends_in_order(order, outcomes[number + 1], 2)
    yield _ends_in_order(NAMES, (False, False, False), 2)
    yield _ends_in_order(NAMES[::-1], (False, False, False), 1)
    yield _ends_in_order(NAMES[::-1], (True, False, True), 1)


async def _deleted_within(play: Play, offset: int) -> None:
    """Records are deleted up to an offset while two transactions are open, one on each side of it."""
    looks, producers = Looks(play), await _producers(play, 2)
    for name in NAMES:
        await producers[name].begin(0)
        await producers[name].produce(0, 2)
    await producers["b"].abort()
    topics = [{"name": play.topic, "partitions": [{"partitionIndex": 0, "offset": offset}]}]
    await looks.ask("DeleteRecords", {"topics": topics, "timeoutMs": 5_000})
    await looks.ends(0)
    await looks.ends(0, timestamp=-2)
    await looks.ends(0, timestamp=MAX_TIMESTAMP)
    await looks.producers(0)
    for at in range(offset, 11):
        await looks.fetch(0, at=at, isolation=1)
    await producers["a"].produce(0)
    await producers["a"].abort()
    await looks.fetch(0, at=offset, isolation=1)
    await producers["c"].commit()
    await looks.fetch(0, at=offset, isolation=1)
    await looks.ends(0)
    await looks.producers(0)


def _deleting(offset: int) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        await _deleted_within(play, offset)

    return run


def deletions() -> Iterator[Script]:
    """Scripts by the new beginning of the log."""
    for offset in (1, 3, 4, 9, -1):
        yield Script(f"records-deleted-up-to-{'the-end' if offset < 0 else offset}", _deleting(offset), partitions=1)


async def _sessions(play: Play) -> None:
    """A fetch session of a consumer that reads committed records."""
    looks, producers = Looks(play), await _producers(play, 2)
    await producers["a"].begin(0, 1)
    made = await looks.fetch(isolation=1, sessionEpoch=0)
    session = made["sessionId"]

    async def again(epoch: int) -> None:
        await looks.fetch(isolation=1, sessionId=session, sessionEpoch=epoch, topics=[])

    await again(1)
    await producers["b"].begin(0)
    await again(2)
    await producers["a"].commit()
    await again(3)
    await producers["b"].abort()
    await again(4)
    await again(5)
    await producers["c"].begin(1)
    await again(6)
    await producers["c"].abort()
    await again(7)


async def _waiting(play: Play) -> None:
    """A fetch that waits for committed records is answered by the marker, whichever it is."""
    looks, producers = Looks(play), await _producers(play, 2)
    for name, commits in (("a", True), ("b", False), ("c", True)):
        producer = producers[name]
        (end,) = (await looks.ends(0))["topics"][0]["partitions"]
        await producer.begin(0)
        over = {"maxWaitMs": 2_000}

        async def end_later(producer: Producer = producer, commits: bool = commits) -> None:
            await play.wait(200)
            await producer.end(commits)

        await play.together(looks.fetch(0, at=end["offset"], isolation=1, **over), end_later())


def sessions() -> Iterator[Script]:
    yield Script("a-session-of-committed-records", _sessions)
    yield Script("a-fetch-waits-for-the-marker", _waiting, partitions=1)
