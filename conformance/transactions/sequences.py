"""Random sequences of requests: two producers with one transactional id, an older client, one without an id."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from conformance.participants.looks import MAX_TIMESTAMP, Looks
from conformance.participants.producer import Producer
from conformance.player.random_play import RandomPlay, Table, random_script
from conformance.transactions.states import markers
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

PARTITIONS: Final = 2


class Sequence(RandomPlay):
    """One random sequence on a cluster of a transaction version. Where it is 0 no client asks for a newer one."""

    length = 45

    def __init__(self, play: Play, version: int = 2) -> None:
        super().__init__(play)
        self.is_old = version == 0
        other = f"{play.transactional_id}-other"
        self._producers = [
            Producer(play, "p", version=version),
            Producer(play, "q", version=version),
            Producer(play, "r", other, version=1),
            Producer(play, "s", other, version=version),
        ]
        self._plain = Producer(play, "i", None)
        self.looks = Looks(play)

    async def begin(self) -> None:
        await self._producers[0].init()
        await self._producers[2].init()

    async def step(self) -> None:
        producer = self.draw.choice(self._producers)
        partition = self.partition()
        answer = await self.pick(self.TABLE)(self, producer, partition)
        if _is_ending(answer):
            await self.play.settle(str(producer.transactional_id))

    async def end(self) -> None:
        for transactional_id in {str(each.transactional_id): None for each in self._producers}:
            await self.looks.transactions(transactional_id)
        await self.looks.producers()
        for isolation in (0, 1):
            await self.looks.fetch(isolation=isolation)
            await self.looks.ends(isolation=isolation)
        await self.looks.both_offsets()

    def partition(self) -> int:
        """The partition of the next probe."""
        return self.draw.randrange(PARTITIONS)

    # --- probes

    async def _begin(self, producer: Producer, partition: int) -> Any:
        if producer.producer_id < 0:
            return await producer.init()
        if producer.version < 2:
            await producer.add(partition)
        return await producer.produce(partition, self.draw.choice((1, 1, 2)))

    async def _produce(self, producer: Producer, partition: int) -> Any:
        """Sometimes with a sequence or an epoch that is not the next, or in a version that is not its client's."""
        known = producer.sequences.get(partition, 0)
        sequence = self.draw.choice((known, known, max(0, known - 1), known + 2))
        epoch = max(0, producer.epoch + self.draw.choice((0, 0, 0, -1, 1)))
        version = self.draw.choice((9, 11) if self.is_old else (9, 11, 12, 13))
        transactional_id = self.draw.choice(("", "", "", "tx-of-others"))
        return await producer.produce(
            partition, version=version, sequence=sequence, epoch=epoch, transactional_id=transactional_id
        )

    async def _end(self, producer: Producer, _: int) -> Any:
        version = self.draw.choice((producer.versions["EndTxn"],) * 3 + ((1, 4) if self.is_old else (1, 4, 5)))
        over = self.draw.choice(({}, {}, {}, {"producerEpoch": max(0, producer.epoch - 1)}))
        return await producer.end(self.draw.random() < 0.6, version, waits=False, **over)

    async def _init(self, producer: Producer, _: int) -> Any:
        expected = self.draw.choice((None, producer.known, producer.known))
        if expected is not None and expected[1] > 0 and self.draw.random() < 0.3:
            expected = (expected[0], expected[1] - 1)
        return await producer.init(expected, self.draw.choice((3, 4, 5)))

    async def _offsets(self, producer: Producer, partition: int) -> Any:
        if producer.version < 2 and self.draw.random() < 0.7:
            await producer.add_offsets()
        version = self.draw.choice((producer.versions["TxnOffsetCommit"],) * 2 + (3, 2 if self.is_old else 5))
        answer = await producer.offsets({partition: self.draw.randrange(100)}, version)
        await self.looks.offsets(partition, stable=self.draw.random() < 0.5)
        return answer

    async def _add(self, producer: Producer, partition: int) -> Any:
        if self.draw.random() < 0.5:
            verifies = self.is_old or self.draw.random() < 0.7
            return await producer.add_as_broker(partition, verify=verifies)
        return await producer.add(partition, version=self.draw.choice((1, 2, 3)))

    async def _marker(self, producer: Producer, partition: int) -> None:
        epoch = max(0, producer.epoch + self.draw.choice((0, 1)))
        await markers(
            producer,
            partition,
            epoch=epoch,
            commit=self.draw.random() < 0.5,
            transaction_version=self.draw.choice((0, 2)),
        )

    async def _plain_record(self, _: Producer, partition: int) -> Any:
        """By an idempotent producer, or by one that is none."""
        if self._plain.producer_id < 0:
            return await self._plain.init()
        if self.draw.random() < 0.3:
            return await self._plain.produce(partition, attributes=0, producer_id=-1, epoch=-1, sequence=-1)
        return await self._plain.produce(partition, attributes=0)

    async def _delete(self, _: Producer, partition: int) -> Any:
        wanted = {"partitionIndex": partition, "offset": self.draw.choice((1, 2, -1))}
        topics = [{"name": self.play.topic, "partitions": [wanted]}]
        return await self.looks.ask("DeleteRecords", {"topics": topics, "timeoutMs": 5_000})

    async def _look(self, producer: Producer, partition: int) -> None:
        isolation = self.draw.randrange(2)
        match self.draw.randrange(5):
            case 0:
                await self.looks.transactions(str(producer.transactional_id))
            case 1:
                await self.looks.producers(partition)
            case 2:
                await self.looks.ends(partition, isolation=isolation, timestamp=MAX_TIMESTAMP)
            case 3:
                await self.looks.fetch(partition, isolation=isolation, at=self.draw.randrange(6))
            case _:
                await self.looks.fetch(isolation=isolation)

    TABLE: ClassVar[Table] = (
        (_begin, 10),
        (_produce, 6),
        (_end, 9),
        (_init, 4),
        (_offsets, 5),
        (_add, 2),
        (_marker, 1),
        (_plain_record, 2),
        (_delete, 1),
        (_look, 6),
    )


def _is_ending(answer: Any) -> bool:
    """Whether a transaction may be on its way to its end: what comes next would depend on how fast that is."""
    return isinstance(answer, dict) and ("producerEpoch" in answer or set(answer) <= {"errorCode", "throttleTimeMs"})


def sequences(count: int, version: int = 2, first: int = 1) -> Iterator[Script]:
    """Scripts by seed, for a cluster of a transaction version."""
    for number in range(first, first + count):
        name = f"sequence-{number:03}" if version == 2 else f"sequence-tv{version}-{number:03}"
        yield random_script(name, partial(Sequence, version=version), partitions=PARTITIONS)
