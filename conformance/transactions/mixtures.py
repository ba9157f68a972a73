"""Random sequences of what few clients send among what all send: odd batches, several groups, levels that change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from conformance.participants.producer import Producer
from conformance.player.random_play import Table, random_script
from conformance.transactions.sequences import PARTITIONS, Sequence
from conformance.transactions.states import markers
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

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

    def __init__(self, play: Play, version: int) -> None:
        super().__init__(play, version)
        self._levels = version == NEWEST
        self._level = version
        self._second_group = f"{play.group}-2"
        self._partition = 0
        """The partition of the probes below; those of a sequence have one of their own."""

    async def end(self) -> None:
        await super().end()
        if self._levels and self._level < NEWEST:
            await self._set_level(NEWEST)

    def partition(self) -> int:
        self._partition = super().partition()
        return super().partition()

    async def _both(self, producer: Producer, _: int) -> Any:
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

    async def _plain_commit(self, _: Producer, __: int) -> None:
        partition = self._partition
        offset = {"partitionIndex": partition, "committedOffset": self.draw.randrange(100), "committedMetadata": ""}
        body = {"groupId": self.play.group, "generationIdOrMemberEpoch": -1, "memberId": ""}
        body |= {"topics": [{"name": self.play.topic, "partitions": [offset]}]}
        await self.looks.ask("OffsetCommit", body, 8)
        await self.looks.both_offsets()

    async def _other_group(self, producer: Producer, _: int) -> None:
        if producer.version < NEWEST:
            await producer.add_offsets(group=self._second_group)
        await producer.offsets({0: self.draw.randrange(50), 1: 7}, groupId=self._second_group)
        await self.looks.offsets(0, 1, stable=self.draw.random() < 0.5, group=self._second_group)

    async def _list(self, _: Producer, __: int) -> None:
        await self.looks.listed(stateFilters=self.draw.choice(([], ["Ongoing"], ["CompleteCommit", "Empty"])))

    async def _add_some(self, producer: Producer, _: int) -> None:
        """AddPartitionsToTxn as brokers send it, for partitions of which one may be unknown."""
        partition = self._partition
        partitions = self.draw.choice(([partition], [0, 1], [partition, 9]))
        verify = self.is_old or self.draw.random() < 0.7
        await producer.add_as_broker(*partitions, verify=verify, version=self.draw.choice((4, 5)))

    async def _init_wrongly(self, producer: Producer, _: int) -> Any:
        """With an epoch that it has not, or a timeout that there is not."""
        epoch = max(0, producer.epoch + self.draw.choice((0, 1, -1, 5)))
        expected = (producer.producer_id, epoch) if producer.producer_id >= 0 else None
        return await producer.init(expected, timeout=self.draw.choice((60_000, 1_000_000, 0, 30_000)))

    async def _odd_batch(self, producer: Producer, _: int) -> None:
        partition = self._partition
        over = self.draw.choice(ODD_BATCHES)
        version = self.draw.choice((9, 11) if self.is_old else (9, 11, 12))
        count, transactional_id = self.draw.choice((1, 2)), self.draw.choice(("", None))
        await producer.produce(partition, count, version, transactional_id=transactional_id, **over)

    async def _epoch_end(self, _: Producer, __: int) -> None:
        partition = self._partition
        known, wanted = self.draw.choice((-1, 0, 3)), self.draw.choice((0, 1, -1))
        partitions = [{"partition": partition, "currentLeaderEpoch": known, "leaderEpoch": wanted}]
        body = {"replicaId": -1, "topics": [{"topic": self.play.topic, "partitions": partitions}]}
        await self.looks.ask("OffsetForLeaderEpoch", body, 4)

    async def _change_level(self, _: Producer, __: int) -> None:
        if self._levels:
            await self._set_level(self.draw.choice((1, NEWEST, NEWEST)))

    async def _set_level(self, level: int) -> None:
        kind = UPGRADE if level >= self._level else SAFE_DOWNGRADE
        update = {"feature": "transaction.version", "maxVersionLevel": level, "upgradeType": kind}
        await self.looks.ask("UpdateFeatures", {"timeoutMs": 10_000, "featureUpdates": [update]}, 2)
        await self.play.wait(SEEN_MS)
        self._level = level

    async def _delete_group(self, _: Producer, __: int) -> None:
        await self.looks.ask("DeleteGroups", {"groupsNames": [self._second_group]}, 2)

    async def _delete_offset(self, _: Producer, __: int) -> None:
        partition = self._partition
        topics = [{"name": self.play.topic, "partitions": [{"partitionIndex": partition}]}]
        await self.looks.ask("OffsetDelete", {"groupId": self.play.group, "topics": topics}, 0)
        await self.looks.both_offsets()

    async def _two_markers(self, producer: Producer, _: int) -> None:
        if producer.producer_id >= 0:
            epoch = max(0, producer.epoch + self.draw.choice((-1, 0, 1)))
            commits, version = self.draw.random() < 0.5, self.draw.choice((0, 1, 2))
            await markers(producer, 0, 1, epoch=epoch, commit=commits, transaction_version=version)

    TABLE: ClassVar[Table] = (
        *Sequence.TABLE,
        (_both, 4),
        (_plain_commit, 2),
        (_other_group, 3),
        (_list, 2),
        (_add_some, 2),
        (_init_wrongly, 2),
        (_odd_batch, 3),
        (_epoch_end, 2),
        (_change_level, 2),
        (_delete_group, 1),
        (_delete_offset, 1),
        (_two_markers, 1),
    )


def mixtures(count: int, version: int = NEWEST, first: int = 1) -> Iterator[Script]:
    """Scripts by seed, for a cluster of a transaction version."""
    for number in range(first, first + count):
        name = f"mixture-tv{version}-{number:03}"
        yield random_script(name, partial(Mixture, version=version), partitions=PARTITIONS)
