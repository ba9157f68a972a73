"""Records producers and transactions: ``python -m conformance.transactions.record [SET ...] [--only TEXT]``.

One file for each set below ``tests/golden/transactions/recorded``, or for the consumer protocol below
``tests/golden/consumer-groups/recorded``: scripts one after the other.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from conformance.command import run
from conformance.kafka.broker import Cluster, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.participants.producer import transaction_of
from conformance.player.recorder import GOLDEN, Recorder, record_sets, text_of
from conformance.sets import SETS
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play, Target
from rejoin.conform.player.recording import exchanges
from rejoin.conform.player.script import Script, ScriptFailed
from rejoin.protocol.partitioner import partition_for

TRANSACTION_STATE: Final = "__transaction_state"
PARTITIONS_OF: Final = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    TRANSACTION_STATE: "transaction.state.log.num.partitions",
}
"""Topics that a cluster makes at first use, and the settings with their sizes; here they are there at once."""

FIRST_ID: Final = 700_000
"""The first producer id of those that are written into the log of a coordinator."""

SETTLED_SECONDS: Final = 0.1
"""After this a broker takes records for a partition that it leads."""


class ExchangeRecorder(Recorder):
    """Records one set, whose scripts have topics of their own."""

    async def prepare(self, cluster: Cluster, scripts: list[Script]) -> None:
        self._internal = {topic: int(self._set.settings[name]) for topic, name in PARTITIONS_OF.items()}
        await self._prepare(cluster)
        if self._set.deny:
            await KafkaActions(cluster).deny(self._set.deny)
        await self._set_epochs(cluster, [script for script in scripts if script.epoch is not None])

    async def play(self, cluster: Cluster, script: Script) -> list[Json]:
        ids = await self._create_topics(cluster, script)
        header = self._header(script, ids) | await self._leaders(cluster, script)
        lines = exchanges(await Play(script, _target(cluster, ids)).play())
        await KafkaActions(cluster).restore()
        await self._delete_topics(cluster, script, (script.topic,))
        return [header, *lines]

    def write(self, folder: Path, recorded: dict[str, list[Json]], *, is_whole: bool) -> None:
        path = folder / "recorded" / f"{self._set.name}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compressed(itertools.chain.from_iterable(recorded.values())))

    async def _prepare(self, cluster: Cluster) -> None:
        """Make the internal topics, and wait until producers and groups can be coordinated."""
        play = Play(Script("warm-up", _nothing), _target(cluster))
        everywhere = list(cluster.ports)
        for name, count in self._internal.items():
            assignments = [
                {"partitionIndex": index, "brokerIds": [*everywhere[first:], *everywhere[:first]]}
                for index in range(count)
                for first in [index % len(everywhere)]
            ]
            topic = {"name": name, "numPartitions": -1, "replicationFactor": -1, "assignments": assignments}
            configs = [{"name": "cleanup.policy", "value": "compact"}]
            await play.unrecorded("CreateTopics", {"topics": [topic | {"configs": configs}], "timeoutMs": 10_000})
        for number, (kind, key) in itertools.product(range(12), ((0, "group"), (1, "tx"))):
            body = {"keyType": kind, "coordinatorKeys": [f"{key}-warm-up-{number}"]}
            while True:
                (found,) = (await play.unrecorded("FindCoordinator", body, 4))["coordinators"]
                if not found["errorCode"] and not await self._is_loading(play, kind, found):
                    break
                await asyncio.sleep(0.05)

        no_id = {"transactionalId": None, "transactionTimeoutMs": 1_000, "producerId": -1, "producerEpoch": -1}
        for broker in cluster.ports:
            while (await play.unrecorded("InitProducerId", no_id, 5, broker=broker))["errorCode"]:
                await asyncio.sleep(0.05)

    async def _set_epochs(self, cluster: Cluster, scripts: list[Script]) -> None:
        """Write the transactional ids of scripts into the log of their coordinator, which then reads it."""
        if not scripts:
            return
        play = Play(Script("set-epochs", _nothing), _target(cluster))
        for number, script in enumerate(scripts):
            index = partition_for(script.transactional_id, self._internal[TRANSACTION_STATE])
            data = transaction_of(script.transactional_id, FIRST_ID + number, script.epoch or 0, play.now())
            partition = {"index": index, "records": data}
            topics = [{"name": TRANSACTION_STATE, "partitionData": [partition]}]
            body = {"transactionalId": None, "acks": -1, "timeoutMs": 5_000, "topicData": topics}
            answer = await play.ask("__admin_client", "Produce", body, 12)
            if answer["responses"][0]["partitionResponses"][0]["errorCode"]:
                raise ScriptFailed(f"{script.name}: {answer}")
        play.close()
        await cluster.stop(1)
        await cluster.start(1)
        await self._prepare(cluster)

    async def _is_loading(self, play: Play, kind: int, found: Json) -> bool:
        broker, key = found["nodeId"], found["key"]
        if kind == 0:
            answer = await play.unrecorded("DescribeGroups", {"groups": [key]}, 0, broker=broker)
            return answer["groups"][0]["errorCode"] in (14, 15, 16)
        answer = await play.unrecorded("DescribeTransactions", {"transactionalIds": [key]}, 0, broker=broker)
        return answer["transactionStates"][0]["errorCode"] in (14, 15, 16)

    async def _create_topics(self, cluster: Cluster, script: Script) -> dict[str, str]:
        """Make the topics of a script; returns their ids."""
        play = Play(script, _target(cluster))
        assignment = [
            {"partitionIndex": index, "brokerIds": replicas} for index, replicas in enumerate(script.assignment or ())
        ]
        own = {
            "name": script.topic,
            "numPartitions": -1 if assignment else script.partitions,
            "replicationFactor": -1 if assignment else 1,
            "assignments": assignment,
            "configs": [{"name": name, "value": value} for name, value in script.configs.items()],
        }
        more = [
            {"name": name, "numPartitions": count, "replicationFactor": 1} for name, count in script.more_topics.items()
        ]
        answer = await play.unrecorded("CreateTopics", {"topics": [own, *more], "timeoutMs": 10_000})
        for made in answer["topics"]:
            if made["errorCode"]:
                raise ScriptFailed(f"{made['name']}: {made['errorMessage']}")
        for index in range(script.partitions):
            leader = script.assignment[index][0] if script.assignment else 1
            await self._until_led(play, script.topic, index, leader)
        play.close()
        # Members of groups are answered by what the coordinator knows of topics, which is behind what leaders know.
        await asyncio.sleep(5 * SETTLED_SECONDS if script.keeps_ids else SETTLED_SECONDS)
        return {made["name"]: made["topicId"] for made in answer["topics"]}

    async def _until_led(self, play: Play, topic: str, partition: int, leader: int) -> None:
        wanted = {"topics": [{"name": topic, "partitionIndexes": [partition]}]}
        while True:
            (seen,) = (await play.unrecorded("DescribeProducers", wanted, broker=leader))["topics"]
            if not seen["partitions"][0]["errorCode"]:
                return
            await asyncio.sleep(0.01)

    async def _leaders(self, cluster: Cluster, script: Script) -> Json:
        """Which broker leads each partition of the internal topics, where there are several brokers."""
        if self._set.brokers == 1:
            return {}
        play = Play(script, _target(cluster))
        leaders = {
            topic: [await play.leader(topic, index) for index in range(count)]
            for topic, count in self._internal.items()
        }
        play.close()
        return {"leaders": leaders}

    async def _delete_topics(self, cluster: Cluster, script: Script, names: Iterable[str]) -> None:
        """The files of thousands of partitions are more than a process may have open."""
        play = Play(script, _target(cluster))
        await play.unrecorded("DeleteTopics", {"topics": [{"name": name} for name in names], "timeoutMs": 10_000})
        play.close()

    def _header(self, script: Script, topic_ids: Json) -> Json:
        topic: Json = {"partitions": script.partitions, "configs": script.configs}
        if script.assignment is not None:
            topic["assignment"] = script.assignment
        return {
            "script": script.name,
            "set": self._set.name,
            "kafka": kafka_version(),
            "brokers": self._set.brokers,
            "settings": self._set.settings,
            "features": {name: str(level) for name, level in self._set.features.items()},
            "topics": {script.topic: topic}
            | {name: {"partitions": count, "configs": {}} for name, count in script.more_topics.items()},
            "deny": list(self._set.deny),
            "fresh": self._set.is_fresh,
            "epochs": {} if script.epoch is None else {script.transactional_id: script.epoch},
        } | ({"ids": topic_ids} if script.keeps_ids else {})


def _target(cluster: Cluster, topic_ids: dict[str, str] | None = None) -> Target:
    return Target(cluster.addresses, cluster=cluster, topic_ids=topic_ids or {})


async def _nothing(_: Play) -> None:
    """Plays nothing."""


def compressed(lines: Iterable[Json]) -> bytes:
    """One JSON object a line."""
    return gzip.compress(text_of(lines).encode(), mtime=0)


if __name__ == "__main__":
    run("producers and transactions", partial(record_sets, ExchangeRecorder, SETS), GOLDEN)
