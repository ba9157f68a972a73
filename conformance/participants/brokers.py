"""Actions of scripts on a cluster of several brokers: move leaders, stop brokers, start them again.

Each action ends when every broker that runs knows of it, and new leaders serve.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final

from conformance.kafka.cluster_actions import KafkaActions
from rejoin.conform.player.play import Play
from rejoin.protocol.partitioner import partition_for

OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
INTERNAL_PARTITIONS: Final = 4
READY_SECONDS: Final = 0.3
IS_LOADING: Final = {14, 15, 16}


class Brokers:
    """The brokers of a script."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self._actions = KafkaActions(play.cluster)
        self._seen: dict[tuple[str, int], int] = {}

    @property
    def running(self) -> list[int]:
        return [number for number in self.play.cluster.ports if number not in self.play.cluster.stopped]

    # --- who leads

    async def coordinator(self) -> int:
        """The coordinator of the script's transactional id."""
        partition = partition_for(self.play.transactional_id, INTERNAL_PARTITIONS)
        return await self.play.leader(TRANSACTIONS, partition)

    async def group_coordinator(self) -> int:
        return await self.play.leader(OFFSETS, partition_for(self.play.group, INTERNAL_PARTITIONS))

    async def leader(self, partition: int) -> int:
        """The leader of a partition of the script's topic."""
        return await self.play.leader(self.play.topic, partition)

    def others(self, *brokers: int) -> list[int]:
        """The brokers that run, but for these."""
        return [each for each in self.running if each not in brokers]

    # --- what is done to them

    async def move_coordinator(self, to: int) -> None:
        """Let another broker coordinate the transactional id."""
        await self.move(TRANSACTIONS, partition_for(self.play.transactional_id, INTERNAL_PARTITIONS), to)

    async def move_group(self, to: int) -> None:
        await self.move(OFFSETS, partition_for(self.play.group, INTERNAL_PARTITIONS), to)

    async def move(self, topic: str, partition: int, to: int) -> None:
        """Let another replica lead a partition."""
        began = self.play.elapsed()
        await self._actions.move(partition, to, lambda: None, topic)
        await self._until_ready()
        self.play.note("move the leader", began, topic=topic, partition=partition, broker=to)

    async def kill(self, broker: int) -> None:
        """Kill a broker. Neither clients nor brokers have noticed when this returns."""
        began = self.play.elapsed()
        await self.play.cluster.stop(broker, signal.SIGKILL)
        self.play.note("kill a broker", began, broker=broker)

    async def stop(self, broker: int) -> None:
        """Stop a broker cleanly: others lead when it is gone."""
        began = self.play.elapsed()
        await self.play.cluster.stop(broker)
        await self._until_ready()
        self.play.note("stop a broker", began, broker=broker, leaders=self._leaders())

    async def start(self, broker: int) -> None:
        began = self.play.elapsed()
        await self.play.cluster.start(broker)
        await self._until_ready()
        self.play.note("start a broker", began, broker=broker, leaders=self._leaders())

    async def until_led(self) -> None:
        """Wait until what a killed broker has led is led by others."""
        began = self.play.elapsed()
        await self._until_ready()
        self.play.note("wait until all partitions are led", began, leaders=self._leaders())

    def _leaders(self) -> dict[str, list[int]]:
        """Who leads: of several replicas the controller has chosen one."""
        topics: dict[str, list[int]] = {}
        for (topic, _), leader in sorted(self._seen.items()):
            topics.setdefault(topic, []).append(leader)
        return topics

    async def _until_ready(self) -> None:
        await self.play.until(self._is_ready)
        await asyncio.sleep(READY_SECONDS)

    async def _is_ready(self) -> bool:
        """Whether all brokers agree who leads what, every replica that runs is in sync, and coordinators have read."""
        seen = []
        for broker in self.running:
            topics = [{"topicId": "A" * 22, "name": name} for name in (OFFSETS, TRANSACTIONS, self.play.topic)]
            found = await self.play.unrecorded("Metadata", {"topics": topics}, 12, broker=broker)
            leaders = {}
            for topic in found["topics"]:
                for one in topic["partitions"]:
                    leaders[topic["name"], one["partitionIndex"]] = one["leaderId"]
                    wanted = set(one["replicaNodes"]) & set(self.running)
                    if one["leaderId"] not in self.running or not wanted <= set(one["isrNodes"]):
                        return False
            seen.append(leaders)
        if any(each != seen[0] for each in seen):
            return False
        self._seen = seen[0]
        for broker in self.running:
            listed: Any = await self.play.unrecorded("ListTransactions", {}, broker=broker)
            if listed["errorCode"] in IS_LOADING:
                return False
            groups: Any = await self.play.unrecorded("ListGroups", {}, 4, broker=broker)
            # A broker that has just started has no producer ids yet.
            no_id = {"transactionalId": None, "transactionTimeoutMs": 1_000}
            given: Any = await self.play.unrecorded("InitProducerId", no_id, 2, broker=broker)
            if groups["errorCode"] in IS_LOADING or given["errorCode"]:
                return False
        return True
