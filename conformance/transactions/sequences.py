"""Random sequences of requests: two producers with one transactional id, an older client, one without an id.

A seed is a script. The requests depend on nothing but the seed, the version and what was answered.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias

from conformance.participants.looks import MAX_TIMESTAMP, Looks
from conformance.participants.producer import Producer
from conformance.player.play import Play
from conformance.player.script import Script
from conformance.transactions.states import markers

LENGTH: Final = 45
PARTITIONS: Final = 2

Choice: TypeAlias = Callable[[], Awaitable[Any]]


class Sequence:
    """One random sequence on a cluster of a transaction version. Where it is 0 no client asks for a newer one."""

    def __init__(self, play: Play, seed: str, version: int = 2) -> None:
        self._play = play
        self._random = random.Random(seed)
        self._is_old = version == 0
        other = f"{play.transactional_id}-other"
        self._producers = [
            Producer(play, "p", version=version),
            Producer(play, "q", version=version),
            Producer(play, "r", other, version=1),
            Producer(play, "s", other, version=version),
        ]
        self._plain = Producer(play, "i", None)
        self._looks = Looks(play)

    async def run(self) -> None:
        await self._producers[0].init()
        await self._producers[2].init()
        for _ in range(LENGTH):
            producer = self._random.choice(self._producers)
            choices = self._choices(producer)
            (chosen,) = self._random.choices([choice for choice, _ in choices], [weight for _, weight in choices])
            answer = await chosen()
            if _is_ending(answer):
                await self._play.settle(str(producer.transactional_id))
        for transactional_id in {str(each.transactional_id): None for each in self._producers}:
            await self._looks.transactions(transactional_id)
        await self._looks.producers()
        for isolation in (0, 1):
            await self._looks.fetch(isolation=isolation)
            await self._looks.ends(isolation=isolation)
        await self._looks.both_offsets()

    def _choices(self, producer: Producer) -> list[tuple[Choice, int]]:
        partition = self._random.randrange(PARTITIONS)
        return [
            (lambda: self._begin(producer, partition), 10),
            (lambda: self._produce(producer, partition), 6),
            (lambda: self._end(producer), 9),
            (lambda: self._init(producer), 4),
            (lambda: self._offsets(producer, partition), 5),
            (lambda: self._add(producer, partition), 2),
            (lambda: self._marker(producer, partition), 1),
            (lambda: self._plain_record(partition), 2),
            (lambda: self._delete(partition), 1),
            (lambda: self._look(producer, partition), 6),
        ]

    async def _begin(self, producer: Producer, partition: int) -> Any:
        if producer.producer_id < 0:
            return await producer.init()
        if producer.version < 2:
            await producer.add(partition)
        return await producer.produce(partition, self._random.choice((1, 1, 2)))

    async def _produce(self, producer: Producer, partition: int) -> Any:
        """Sometimes with a sequence or an epoch that is not the next, or in a version that is not its client's."""
        known = producer.sequences.get(partition, 0)
        sequence = self._random.choice((known, known, max(0, known - 1), known + 2))
        epoch = max(0, producer.epoch + self._random.choice((0, 0, 0, -1, 1)))
        version = self._random.choice((9, 11) if self._is_old else (9, 11, 12, 13))
        transactional_id = self._random.choice(("", "", "", "tx-of-others"))
        return await producer.produce(
            partition, version=version, sequence=sequence, epoch=epoch, transactional_id=transactional_id
        )

    async def _end(self, producer: Producer) -> Any:
        version = self._random.choice((producer.versions["EndTxn"],) * 3 + ((1, 4) if self._is_old else (1, 4, 5)))
        over = self._random.choice(({}, {}, {}, {"producerEpoch": max(0, producer.epoch - 1)}))
        return await producer.end(self._random.random() < 0.6, version, waits=False, **over)

    async def _init(self, producer: Producer) -> Any:
        expected = self._random.choice((None, producer.known, producer.known))
        if expected is not None and expected[1] > 0 and self._random.random() < 0.3:
            expected = (expected[0], expected[1] - 1)
        return await producer.init(expected, self._random.choice((3, 4, 5)))

    async def _offsets(self, producer: Producer, partition: int) -> Any:
        if producer.version < 2 and self._random.random() < 0.7:
            await producer.add_offsets()
        version = self._random.choice((producer.versions["TxnOffsetCommit"],) * 2 + (3, 2 if self._is_old else 5))
        answer = await producer.offsets({partition: self._random.randrange(100)}, version)
        await self._looks.offsets(partition, stable=self._random.random() < 0.5)
        return answer

    async def _add(self, producer: Producer, partition: int) -> Any:
        if self._random.random() < 0.5:
            verifies = self._is_old or self._random.random() < 0.7
            return await producer.add_as_broker(partition, verify=verifies)
        return await producer.add(partition, version=self._random.choice((1, 2, 3)))

    async def _marker(self, producer: Producer, partition: int) -> None:
        epoch = max(0, producer.epoch + self._random.choice((0, 1)))
        await markers(
            producer,
            partition,
            epoch=epoch,
            commit=self._random.random() < 0.5,
            transaction_version=self._random.choice((0, 2)),
        )

    async def _plain_record(self, partition: int) -> Any:
        """By an idempotent producer, or by one that is none."""
        if self._plain.producer_id < 0:
            return await self._plain.init()
        if self._random.random() < 0.3:
            return await self._plain.produce(partition, attributes=0, producer_id=-1, epoch=-1, sequence=-1)
        return await self._plain.produce(partition, attributes=0)

    async def _delete(self, partition: int) -> Any:
        wanted = {"partitionIndex": partition, "offset": self._random.choice((1, 2, -1))}
        topics = [{"name": self._play.topic, "partitions": [wanted]}]
        return await self._looks.ask("DeleteRecords", {"topics": topics, "timeoutMs": 5_000})

    async def _look(self, producer: Producer, partition: int) -> None:
        isolation = self._random.randrange(2)
        match self._random.randrange(5):
            case 0:
                await self._looks.transactions(str(producer.transactional_id))
            case 1:
                await self._looks.producers(partition)
            case 2:
                await self._looks.ends(partition, isolation=isolation, timestamp=MAX_TIMESTAMP)
            case 3:
                await self._looks.fetch(partition, isolation=isolation, at=self._random.randrange(6))
            case _:
                await self._looks.fetch(isolation=isolation)


def _is_ending(answer: Any) -> bool:
    """Whether a transaction may be on its way to its end: what comes next would depend on how fast that is."""
    return isinstance(answer, dict) and ("producerEpoch" in answer or set(answer) <= {"errorCode", "throttleTimeMs"})


def sequences(count: int, version: int = 2, first: int = 1) -> Iterator[Script]:
    """Scripts by seed, for a cluster of a transaction version."""
    for number in range(first, first + count):
        name = f"sequence-{number:03}" if version == 2 else f"sequence-tv{version}-{number:03}"
        yield _script(name, version)


def _script(name: str, version: int) -> Script:
    async def run(play: Play) -> None:
        await Sequence(play, name, version).run()

    return Script(name, run, partitions=PARTITIONS)
