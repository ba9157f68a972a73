"""Compaction of logs with transactions: records aborted and committed, markers, tombstones, idle producers.

Each batch is a segment of its own, as the next one is a few milliseconds younger (``segment.ms`` 1); the newest stays.
The topic is compacted only while nothing is written, so that each round of cleaning has the same records in all runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from conformance.participants.looks import Looks
from conformance.participants.producer import Producer, batch
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

DELETE_RETENTION_MS: Final = 2_000
CONFIGS: Final = {
    "cleanup.policy": "delete",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
APART_MS: Final = 5
LATER_MS: Final = DELETE_RETENTION_MS + 500


class Keyed:
    """Writes records with keys, each batch younger than the one before, and has them compacted."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._looks = Looks(play)

    async def write(self, producer: Producer, *records: tuple[str, str | None]) -> None:
        """A batch with these keys and values; no value is a tombstone."""
        await self._play.wait(APART_MS)
        now = round(time.time() * 1000)
        described: list[Json] = [
            {"attributes": 0, "timestampDelta": 0, "offsetDelta": at, "key": key, "value": value, "headers": []}
            for at, (key, value) in enumerate(records)
        ]
        sequence = producer.sequences.get(0, 0)
        attributes = 16 if producer.transactional_id else 0
        over: Json = {"baseTimestamp": now, "maxTimestamp": now, "attributes": attributes, "records": described}
        data = batch(producer.producer_id, producer.epoch, sequence, ["" for _ in records], **over)
        version = producer.versions["Produce"]
        body = producer.produce_body({0: data}, version, producer.transactional_id)
        answer = await self._play.ask(producer.name, "Produce", body, version)
        if not answer["responses"][0]["partitionResponses"][0]["errorCode"]:
            producer.sequences[0] = sequence + len(records)

    async def end(self, producer: Producer, *, commits: bool) -> None:
        await self._play.wait(APART_MS)
        await producer.end(commits)

    async def compact(self, up_to: int) -> None:
        """Have all below an offset compacted, and look at what is left."""
        await self._set_policy("compact")
        await self._play.until_cleaned(up_to)
        await self._set_policy("delete")
        for isolation in (0, 1):
            await self._looks.fetch(0, isolation=isolation)
        await self._looks.ends(0, timestamp=-2)
        await self._looks.ends(0, timestamp=-1)
        await self._looks.producers(0)

    async def _set_policy(self, policy: str) -> None:
        change = {"name": "cleanup.policy", "configOperation": 0, "value": policy}
        resource = {"resourceType": 2, "resourceName": self._play.topic, "configs": [change]}
        await self._looks.ask("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False}, 1)


async def _plain(play: Play) -> tuple[Keyed, Producer]:
    """One whose last batch is the newest in each round of cleaning, and stays as it is."""
    plain = Producer(play, "i", None)
    await plain.init()
    return Keyed(play), plain


async def _ended(play: Play, *, commits: bool) -> None:
    """A transaction whose records are all replaced by later ones, round after round."""
    keyed, plain = await _plain(play)
    producer = Producer(play)
    await producer.init()
    await keyed.write(producer, ("a", "a1"), ("b", "b1"))
    await keyed.write(producer, ("a", "a2"))
    await keyed.end(producer, commits=commits)
    await keyed.write(plain, ("z", "z1"))
    await keyed.compact(4)
    for number in range(3):
        await keyed.write(plain, ("a", f"a{number + 3}"))
        await keyed.write(plain, ("b", f"b{number + 3}"))
        await keyed.write(plain, ("z", f"z{number + 3}"))
        await keyed.compact(7 + 3 * number)
    await play.wait(LATER_MS)
    await keyed.write(plain, ("z", "z9"))
    await keyed.compact(14)
    await keyed.write(plain, ("z", "z10"))
    await keyed.compact(15)


async def _mixed(play: Play) -> None:
    """Two transactions in turns, one of which is aborted; a third stays open, and nothing behind it is cleaned."""
    keyed, plain = await _plain(play)
    p, q, r = (Producer(play, name, f"{play.transactional_id}-{name}") for name in "pqr")
    for producer in (p, q, r):
        await producer.init()
    await keyed.write(plain, ("a", "a0"), ("b", "b0"))
    await keyed.write(p, ("a", "a1"))
    await keyed.write(q, ("b", "b1"))
    await keyed.write(p, ("c", "c1"))
    await keyed.end(q, commits=False)
    await keyed.end(p, commits=True)
    await keyed.write(r, ("a", "a2"))
    await keyed.write(plain, ("c", "c2"))
    await keyed.write(plain, ("z", "z1"))
    await keyed.compact(7)
    await keyed.end(r, commits=False)
    await keyed.write(plain, ("z", "z2"))
    await keyed.compact(11)
    await keyed.write(p, ("a", "a3"))
    await keyed.end(p, commits=True)
    await keyed.write(plain, ("z", "z3"))
    await keyed.compact(14)
    await play.wait(LATER_MS)
    await keyed.write(plain, ("z", "z4"))
    await keyed.compact(15)


async def _tombstones(play: Play) -> None:
    """Tombstones in transactions and outside: they go when delete.retention.ms is over and something new is cleaned."""
    keyed, plain = await _plain(play)
    producer = Producer(play)
    await producer.init()
    await keyed.write(plain, ("a", "a1"), ("b", "b1"), ("c", "c1"))
    await keyed.write(producer, ("a", None), ("d", "d1"))
    await keyed.end(producer, commits=True)
    await keyed.write(producer, ("b", None))
    await keyed.end(producer, commits=False)
    await keyed.write(plain, ("c", None))
    await keyed.write(plain, ("z", "z1"))
    await keyed.compact(9)
    await keyed.write(plain, ("z", "z2"))
    await keyed.compact(10)
    await play.wait(LATER_MS)
    await keyed.write(plain, ("z", "z3"))
    await keyed.compact(11)
    await keyed.write(plain, ("z", "z4"))
    await keyed.compact(12)


async def _idle_producers(play: Play) -> None:
    """Of each producer the last batch stays, if need be without records."""
    keyed, plain = await _plain(play)
    first, second = Producer(play, "j", None), Producer(play, "k", None)
    for producer in (first, second):
        await producer.init()
        for number in range(3):
            await keyed.write(producer, ("a", f"a{number}"), ("b", f"b{number}"))
    await keyed.write(plain, ("a", "a9"))
    await keyed.write(plain, ("b", "b9"))
    await keyed.write(plain, ("z", "z1"))
    await keyed.compact(14)
    await keyed.write(first, ("c", "c1"))
    await keyed.write(plain, ("z", "z2"))
    await keyed.compact(16)


RUNS: Final[dict[str, Callable[[Play], Awaitable[None]]]] = {
    "a-committed-transaction-is-compacted": partial(_ended, commits=True),
    "an-aborted-transaction-is-compacted": partial(_ended, commits=False),
    "transactions-in-turns-are-compacted": _mixed,
    "tombstones-of-transactions": _tombstones,
    "last-batches-of-idle-producers": _idle_producers,
}


def compaction() -> Iterator[Script]:
    """Scripts on topics that are compacted."""
    for name, run in RUNS.items():
        yield Script(name, run, partitions=1, configs=CONFIGS)
