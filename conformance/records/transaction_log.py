"""Compaction of ``__transaction_state``: what is left of transactional ids, open, ended and expired.

Each script has a partition of the topic to itself. Its segments end with every batch and the topic is compacted only
while nothing is written, as in :mod:`conformance.records.compaction`.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from conformance.participants.looks import BIG, CONSUMER, Looks
from conformance.participants.producer import Producer
from conformance.records.compaction import APART_MS, CONFIGS, LATER_MS
from conformance.transactions.lives import LAST
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script
from rejoin.conform.records.described_transaction_log import batches_of
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC

LOG_PARTITIONS: Final = 50
EXPIRATION_MS: Final = 4_000
EXPIRED_MS: Final = EXPIRATION_MS + 1_000
TIMEOUT_MS: Final = 500
FETCH_VERSION: Final = 12
"""The newest that names topics."""


class TransactionLog:
    """The partition of ``__transaction_state`` in which a script's transactional ids are."""

    def __init__(self, play: Play, version: int) -> None:
        self.play = play
        self.looks = Looks(play)
        self.partition = partition_for(play.transactional_id, LOG_PARTITIONS)
        self._version = version

    def producers(self, count: int) -> list[Producer]:
        """Producers ``p-0``, ``p-1`` … of transactional ids that are all in this partition."""
        own = self.play.transactional_id
        names = (f"{own}-{number}" for number in itertools.count())
        here = (name for name in names if partition_for(name, LOG_PARTITIONS) == self.partition)
        return [
            Producer(self.play, f"p-{at}", name, self._version)
            for at, name in enumerate([own, *itertools.islice(here, count - 1)])
        ]

    async def configure(self, **configs: str) -> None:
        """Give the topic other settings."""
        changes = [
            {"name": name.replace("_", "."), "configOperation": 0, "value": value} for name, value in configs.items()
        ]
        resource = {"resourceType": 2, "resourceName": TRANSACTION_STATE_TOPIC, "configs": changes}
        await self.looks.ask("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False}, 1)

    async def begin(self) -> None:
        """Keep everything until it is compacted."""
        await self.configure(**{name.replace(".", "_"): value for name, value in CONFIGS.items()})
        await self.play.wait(10 * APART_MS)

    async def compact(self) -> None:
        """Have all but the newest batch compacted, and read what is left."""
        newest = (await self._batches(is_recorded=False))[-1]["baseOffset"]
        await self.configure(cleanup_policy="compact")
        await self.play.until_cleaned(newest, TRANSACTION_STATE_TOPIC, self.partition)
        await self.configure(cleanup_policy="delete")
        await self.read()

    async def read(self, at: int = 0) -> None:
        """Every batch of the log, from an offset on."""
        await self._batches(at, is_recorded=True)

    async def _batches(self, at: int = 0, *, is_recorded: bool) -> list[Json]:
        """Every batch, by one Fetch after the other: each ends with a segment."""
        found: list[Json] = []
        while True:
            body = self._fetch(at)
            if is_recorded:
                answer = await self.play.ask(CONSUMER, "Fetch", body, FETCH_VERSION)
            else:
                answer = await self.play.unrecorded("Fetch", body, FETCH_VERSION)
            batches = batches_of(answer)
            if not batches:
                return found
            found += batches
            at = found[-1]["baseOffset"] + found[-1]["lastOffsetDelta"] + 1

    def _fetch(self, at: int) -> Json:
        partition = {"partition": self.partition, "fetchOffset": at, "partitionMaxBytes": BIG}
        partition |= {"currentLeaderEpoch": -1, "lastFetchedEpoch": -1}
        topics = [{"topic": TRANSACTION_STATE_TOPIC, "partitions": [partition]}]
        limits = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": BIG, "isolationLevel": 0}
        return limits | {"sessionId": 0, "sessionEpoch": -1, "topics": topics}


async def _transact(producer: Producer, *partitions: int, commits: bool | None) -> None:
    """A transaction over partitions; it stays open if it does not end."""
    await producer.play.wait(APART_MS)
    await producer.begin(*partitions)
    if commits is not None:
        await producer.play.wait(APART_MS)
        await producer.end(commits)


async def _ended(log: TransactionLog) -> None:
    """Of ids whose transactions have ended the newest record stays, round after round."""
    p, q, last = log.producers(3)
    await log.begin()
    await p.init()
    await _transact(p, 0, commits=True)
    await q.init()
    await _transact(q, 0, 1, commits=False)
    await log.read()
    await log.compact()
    for commits in (True, False):
        await _transact(p, 1, commits=commits)
        await _transact(q, 0, commits=not commits)
        await log.compact()
    await last.init()
    await log.compact()
    for producer in (p, q, last):
        await log.looks.transactions(str(producer.transactional_id))
        await producer.init(producer.known)
    await log.read()


async def _open(log: TransactionLog) -> None:
    """Ids in the middle of transactions go on after all before them was compacted."""
    p, q, r, last = log.producers(4)
    await log.begin()
    for producer in (p, q, r):
        await producer.init()
    await _transact(p, 0, commits=None)
    await _transact(q, 0, commits=True)
    await _transact(q, 1, commits=None)
    await r.offsets({0: 5}) if r.version == 2 else await r.add_offsets()
    await last.init()
    await log.compact()
    await _transact(p, 1, commits=True)
    await r.end(False)
    await last.init()
    await log.compact()
    await q.end(False)
    await log.read()
    for producer in (p, q, r):
        await log.looks.transactions(str(producer.transactional_id))


async def _restarted(log: TransactionLog) -> None:
    """A coordinator that reads a compacted log knows every id as it was."""
    p, q, r, last = log.producers(4)
    await log.begin()
    for producer in (p, q, r):
        await producer.init()
        await _transact(producer, 0, commits=True)
    await _transact(q, 0, commits=False)
    await _transact(r, 0, 1, commits=None)
    await last.init()
    await log.compact()
    await log.play.restart("stopped")
    await log.read()
    for producer in (p, q, r, last):
        await log.looks.transactions(str(producer.transactional_id))
    await p.init(p.known)
    await _transact(p, 1, commits=True)
    await q.init()
    await r.end(True)
    await last.init(last.known)
    await log.read()
    await log.looks.producers()
    await log.looks.fetch()


async def _aborted_by_others(log: TransactionLog) -> None:
    """Transactions that a newer producer or the coordinator aborts."""
    p, q, last = log.producers(3)
    newer = log.producers(1)[0]
    await log.begin()
    await p.init()
    await _transact(p, 0, commits=None)
    await newer.init()
    await log.play.settle(log.play.transactional_id)
    await newer.init()
    await q.init(timeout=TIMEOUT_MS)
    await _transact(q, 0, commits=None)
    await log.play.wait(2 * TIMEOUT_MS)
    await log.read()
    await p.end(True)
    await q.init(q.known)
    await _transact(q, 1, commits=True)
    await _transact(newer, 1, commits=True)
    await last.init()
    await log.compact()
    for producer in (newer, q):
        await log.looks.transactions(str(producer.transactional_id))


async def _mixed_versions(log: TransactionLog) -> None:
    """Requests of older and newer clients for one id."""
    (p,) = log.producers(1)
    await log.begin()
    await p.init()
    for commits in (True, False):
        await p.add(0)
        await p.produce(0, version=11)
        await p.end(commits, 5)
        await p.produce(0, version=13)
        await p.add_offsets()
        await p.end(commits, 4)
        await p.init()
        await p.add(1)
        await p.add_as_broker(0, version=4)
        await p.add_offsets()
        await p.end(commits, 5)
        await p.add_as_broker(1)
        await p.add(0)
        await p.end(commits, 4)
        await p.init(p.known)
    await log.read()
    await log.compact()


async def _exhausted(log: TransactionLog) -> None:
    """An id whose producer ids run out of epochs; an end that is repeated late names the one before."""
    p, last = log.producers(2)
    await log.begin()
    await p.init()
    for _ in range(3):
        await _transact(p, 0, commits=True)
        before = p.before
        await p.init(p.known)
    await _transact(p, 0, commits=None)
    for producer_id, epoch in (before, (before[0], LAST)):
        await p.end(True, producerId=producer_id, producerEpoch=epoch, waits=False)
        await p.init((producer_id, epoch))
        await log.play.settle(log.play.transactional_id)
    await log.looks.transactions()
    await log.read(1)
    await last.init()
    await log.compact()


async def _expired(log: TransactionLog) -> None:
    """An id that is not used leaves a tombstone, and that goes when delete.retention.ms is over."""
    p, last = log.producers(2)
    await log.begin()
    await p.init()
    await _transact(p, 0, commits=True)
    await log.compact()
    await log.play.wait(EXPIRED_MS)
    await log.looks.transactions()
    await log.read()
    await last.init()
    await log.compact()
    await log.play.wait(LATER_MS)
    await last.init()
    await log.compact()
    await last.init()
    await log.compact()
    await p.init()
    await _transact(p, 1, commits=False)
    await log.read()


async def _expired_between(log: TransactionLog) -> None:
    """An id that expired and came back is there with its new producer id only."""
    p, last = log.producers(2)
    await log.begin()
    await p.init()
    await _transact(p, 0, commits=True)
    await log.play.wait(EXPIRED_MS)
    await p.init()
    await _transact(p, 0, commits=False)
    await log.read()
    await last.init()
    await log.compact()
    await log.looks.transactions()
    await p.end(False)


async def _open_and_expired(log: TransactionLog) -> None:
    """An open transaction does not expire before its end; each of several ids leaves a tombstone."""
    p, q, r, last = log.producers(4)
    await log.begin()
    await p.init()
    await q.init(timeout=2 * EXPIRED_MS)
    await _transact(q, 0, commits=None)
    await r.init(timeout=EXPIRATION_MS // 2)
    await _transact(r, 0, commits=None)
    await log.play.wait(EXPIRED_MS)
    await log.read()
    for producer in (p, q, r):
        await log.looks.transactions(str(producer.transactional_id))
    await last.init()
    await log.compact()
    await log.play.wait(EXPIRED_MS)
    await log.read()
    await q.end(True)
    await last.init()
    await log.compact()
    for producer in (p, q, r):
        await log.looks.transactions(str(producer.transactional_id))


async def _expired_together(log: TransactionLog) -> None:
    """Ids that expire at one look have their tombstones in one batch."""
    *several, last = log.producers(7)
    await log.begin()
    for producer in several:
        await producer.init()
    await log.play.wait(EXPIRED_MS)
    await log.read()
    await last.init()
    await log.compact()


Run = Callable[[TransactionLog], Awaitable[None]]
RUNS: Final[dict[str, Run]] = {
    "aborts-by-others-are-compacted-in-the-log": _aborted_by_others,
    "ended-transactions-are-compacted-in-the-log": _ended,
    "open-transactions-are-compacted-in-the-log": _open,
    "a-compacted-log-is-read-after-a-restart": _restarted,
}
RUNS_OF_EXPIRY: Final[dict[str, Run]] = {
    "an-expired-id-leaves-a-tombstone": _expired,
    "an-expired-id-comes-back": _expired_between,
    "open-transactions-do-not-expire": _open_and_expired,
}
RUNS_OF_ONE_LOOK: Final[dict[str, Run]] = {"ids-that-expire-together-have-one-batch": _expired_together}
"""For one version: with whichever ids a look comes between depends on the broker's timer."""


def transaction_log(level: int, *, expires: bool) -> Iterator[Script]:
    """Scripts for a cluster of a transaction version, on which transactional ids expire soon or do not."""
    scripts = list(_scripts(level, expires=expires))
    partitions = {partition_for(script.transactional_id, LOG_PARTITIONS) for script in scripts}
    assert len(partitions) == len(scripts), "two scripts share a partition: give one of them another name"
    yield from scripts


def _scripts(level: int, *, expires: bool) -> Iterator[Script]:
    suffix = "" if level == 2 else f"-tv{level}"
    one_look = RUNS_OF_ONE_LOOK if level == 2 else {}
    for name, run in (RUNS_OF_EXPIRY | one_look if expires else RUNS).items():
        yield _script(f"{name}{suffix}", run, level)
        if level == 2:
            yield _script(f"{name}-by-old-clients", run, 1)
    if not expires:
        yield _script(f"an-id-without-epochs-in-the-log{suffix}", _exhausted, level, epoch=LAST - 2)
        if level:
            yield _script(f"requests-of-several-versions-in-the-log{suffix}", _mixed_versions, level)


def _script(name: str, run: Run, version: int, *, epoch: int | None = None) -> Script:
    async def play_it(play: Play) -> None:
        await run(TransactionLog(play, version))

    return Script(name, play_it, epoch=epoch)
