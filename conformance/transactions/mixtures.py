"""Random sequences of what few clients send among what all send: odd batches, several groups, levels that change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.participants.producer import Producer
from conformance.player.messages import Json
from conformance.player.play import Play
from conformance.player.script import Script
from conformance.transactions.sequences import PARTITIONS, Choice, Sequence
from conformance.transactions.states import markers

ODD_BATCHES: Final[tuple[Json, ...]] = (
    {"attributes": 0},
    {"producer_id": -1, "epoch": -1, "sequence": -1},
    {"sequence": 5},
    {"sequence": 2**31 - 2},
    {"epoch": 32_767},
    {"magic": 1},
    {"baseTimestamp": -5},
    {"attributes": 0, "sequence": 0},
)
NEWEST: Final = 2
UPGRADE, SAFE_DOWNGRADE = 1, 2
SEEN_MS: Final = 300
"""Within this a broker knows of a level that has changed."""


class Mixture(Sequence):
    """One random sequence. Levels change where the cluster begins with the newest."""

    def __init__(self, play: Play, seed: str, version: int) -> None:
        super().__init__(play, seed, version)
        self._levels = version == NEWEST
        self._level = version
        self._second_group = f"{play.group}-2"

    async def run(self) -> None:
        await super().run()
        if self._levels and self._level < NEWEST:
            await self._set_level(NEWEST)

    def _choices(self, producer: Producer) -> list[tuple[Choice, int]]:
        partition = self._random.randrange(PARTITIONS)
        return [
            *super()._choices(producer),
            (lambda: self._both(producer), 4),
            (lambda: self._plain_commit(partition), 2),
            (lambda: self._other_group(producer), 3),
            (self._list, 2),
            (lambda: self._add_some(producer, partition), 2),
            (lambda: self._init_wrongly(producer), 2),
            (lambda: self._odd_batch(producer, partition), 3),
            (lambda: self._epoch_end(partition), 2),
            (self._change_level, 2),
            (self._delete_group, 1),
            (lambda: self._delete_offset(partition), 1),
            (lambda: self._two_markers(producer), 1),
        ]

    async def _both(self, producer: Producer) -> Any:
        """A batch for each partition in one request."""
        if producer.producer_id < 0:
            return await producer.init()
        if producer.version < NEWEST:
            await producer.add(0, 1)
        version = producer.versions["Produce"]
        body = producer.produce_body({each: producer.batch(each) for each in range(PARTITIONS)}, version)
        answer = await producer.ask("Produce", body, version)
        for each in answer["responses"][0]["partitionResponses"]:
            if not each["errorCode"]:
                producer.sequences[each["index"]] = producer.sequences.get(each["index"], 0) + 1
        return None

    async def _plain_commit(self, partition: int) -> None:
        offset = {"partitionIndex": partition, "committedOffset": self._random.randrange(100), "committedMetadata": ""}
        body = {"groupId": self._play.group, "generationIdOrMemberEpoch": -1, "memberId": ""}
        body |= {"topics": [{"name": self._play.topic, "partitions": [offset]}]}
        await self._looks.ask("OffsetCommit", body, 8)
        await self._looks.both_offsets()

    async def _other_group(self, producer: Producer) -> None:
        if producer.version < NEWEST:
            await producer.add_offsets(group=self._second_group)
        await producer.offsets({0: self._random.randrange(50), 1: 7}, groupId=self._second_group)
        await self._looks.offsets(0, 1, stable=self._random.random() < 0.5, group=self._second_group)

    async def _list(self) -> None:
        await self._looks.listed(stateFilters=self._random.choice(([], ["Ongoing"], ["CompleteCommit", "Empty"])))

    async def _add_some(self, producer: Producer, partition: int) -> None:
        """AddPartitionsToTxn as brokers send it, for partitions of which one may be unknown."""
        partitions = self._random.choice(([partition], [0, 1], [partition, 9]))
        verify = self._is_old or self._random.random() < 0.7
        await producer.add_as_broker(*partitions, verify=verify, version=self._random.choice((4, 5)))

    async def _init_wrongly(self, producer: Producer) -> Any:
        """With an epoch that it has not, or a timeout that there is not."""
        epoch = max(0, producer.epoch + self._random.choice((0, 1, -1, 5)))
        expected = (producer.producer_id, epoch) if producer.producer_id >= 0 else None
        return await producer.init(expected, timeout=self._random.choice((60_000, 1_000_000, 0, 30_000)))

    async def _odd_batch(self, producer: Producer, partition: int) -> None:
        over = self._random.choice(ODD_BATCHES)
        version = self._random.choice((9, 11) if self._is_old else (9, 11, 12))
        count, transactional_id = self._random.choice((1, 2)), self._random.choice(("", None))
        await producer.produce(partition, count, version, transactional_id=transactional_id, **over)

    async def _epoch_end(self, partition: int) -> None:
        known, wanted = self._random.choice((-1, 0, 3)), self._random.choice((0, 1, -1))
        partitions = [{"partition": partition, "currentLeaderEpoch": known, "leaderEpoch": wanted}]
        body = {"replicaId": -1, "topics": [{"topic": self._play.topic, "partitions": partitions}]}
        await self._looks.ask("OffsetForLeaderEpoch", body, 4)

    async def _change_level(self) -> None:
        if self._levels:
            await self._set_level(self._random.choice((1, NEWEST, NEWEST)))

    async def _set_level(self, level: int) -> None:
        kind = UPGRADE if level >= self._level else SAFE_DOWNGRADE
        update = {"feature": "transaction.version", "maxVersionLevel": level, "upgradeType": kind}
        await self._looks.ask("UpdateFeatures", {"timeoutMs": 10_000, "featureUpdates": [update]}, 2)
        await self._play.wait(SEEN_MS)
        self._level = level

    async def _delete_group(self) -> None:
        await self._looks.ask("DeleteGroups", {"groupsNames": [self._second_group]}, 2)

    async def _delete_offset(self, partition: int) -> None:
        topics = [{"name": self._play.topic, "partitions": [{"partitionIndex": partition}]}]
        await self._looks.ask("OffsetDelete", {"groupId": self._play.group, "topics": topics}, 0)
        await self._looks.both_offsets()

    async def _two_markers(self, producer: Producer) -> None:
        if producer.producer_id >= 0:
            epoch = max(0, producer.epoch + self._random.choice((-1, 0, 1)))
            commits, version = self._random.random() < 0.5, self._random.choice((0, 1, 2))
            await markers(producer, 0, 1, epoch=epoch, commit=commits, transaction_version=version)


def mixtures(count: int, version: int = NEWEST, first: int = 1) -> Iterator[Script]:
    """Scripts by seed, for a cluster of a transaction version."""
    for number in range(first, first + count):
        yield _script(f"mixture-tv{version}-{number:03}", version)


def _script(name: str, version: int) -> Script:
    async def run(play: Play) -> None:
        await Mixture(play, name, version).run()

    return Script(name, run, partitions=PARTITIONS)
