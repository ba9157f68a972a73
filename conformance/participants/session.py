"""A producer on several brokers: what it asks, and of which broker."""

from __future__ import annotations

from typing import Any, Final

from conformance.participants.brokers import Brokers
from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from rejoin.conform.player.play import Play

PARTITIONS: Final = range(3)
"""The partitions of a script's topic, each led by another broker when the script begins."""


class Session:
    """A producer on three brokers, which asks its coordinator and the leaders of partitions."""

    def __init__(self, play: Play, name: str = "p", version: int = 2) -> None:
        self.play = play
        self.brokers = Brokers(play)
        self.producer = Producer(play, name, version=version)
        self.looks = Looks(play)

    async def find(self) -> int:
        """Learn which broker coordinates the transactional id."""
        self.producer.broker = self.looks.broker = await self.brokers.coordinator()
        return self.producer.broker

    async def led_elsewhere(self, broker: int) -> list[int]:
        """The partitions that another broker leads."""
        return [partition for partition in PARTITIONS if await self.brokers.leader(partition) != broker]

    async def begin(self, *partitions: int) -> None:
        for partition in partitions:
            if self.producer.version < 2:
                await self.producer.add(partition)
            await self.produce(partition)

    async def produce(self, partition: int, **over: Any) -> Any:
        return await self.producer.produce(partition, broker=await self.brokers.leader(partition), **over)

    async def offsets(self, offsets: dict[int, int], **over: Any) -> Any:
        """TxnOffsetCommit, at the coordinator of the group."""
        producer, coordinator = self.producer, self.producer.broker
        if producer.version < 2:
            await producer.add_offsets()
        producer.broker = await self.brokers.group_coordinator()
        answer = await producer.offsets(offsets, **over)
        producer.broker = coordinator
        return answer

    async def look(self) -> None:
        """The transaction, and each partition at its leader."""
        await self.looks.transactions()
        for partition in PARTITIONS:
            at = Looks(self.play, await self.brokers.leader(partition))
            await at.producers(partition)
            await self.read(partition)

    async def read(self, partition: int, broker: int | None = None) -> None:
        """Read a partition as consumers do; in versions 9 and 10 leaders alone answer Fetch."""
        version = 18 if broker is None else 10
        broker = await self.brokers.leader(partition) if broker is None else broker
        wanted = {"partition": partition, "fetchOffset": 0, "partitionMaxBytes": 1_048_576, "currentLeaderEpoch": -1}
        topic = {"topicId": self.play.topic_id} if version == 18 else {"topic": self.play.topic}
        wanted |= {"lastFetchedEpoch": -1} if version == 18 else {}
        for isolation in (0, 1):
            body = {
                "maxWaitMs": 0,
                "minBytes": 1,
                "maxBytes": 1_048_576,
                "isolationLevel": isolation,
                "topics": [{**topic, "partitions": [wanted]}],
            }
            await self.play.ask("c", "Fetch", body | {"sessionId": 0, "sessionEpoch": -1}, version, broker=broker)
        end = {"partitionIndex": partition, "timestamp": -1, "currentLeaderEpoch": -1}
        topics = [{"name": self.play.topic, "partitions": [end]}]
        body = {"replicaId": -1, "topics": topics, "isolationLevel": 1}
        await self.play.ask("c", "ListOffsets", body, 11, broker=broker)

    async def group_offsets(self, *, stable: bool, broker: int | None = None) -> None:
        topics = [{"name": self.play.topic, "partitionIndexes": [0, 1]}]
        body = {"groups": [{"groupId": self.play.group, "topics": topics}], "requireStable": stable}
        broker = await self.brokers.group_coordinator() if broker is None else broker
        await self.play.ask("c", "OffsetFetch", body, 8, broker=broker)

    async def end(self, *, commits: bool) -> None:
        """EndTxn. If it comes to markers, the next request finds them written."""
        await self.producer.end(commits)
