"""aiokafka, on an event loop of its own that runs while something is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.real_clients.client import PATIENCE_SECONDS, Client

T = TypeVar("T")


class AioKafka(Client):
    name = "aiokafka"
    version = aiokafka.__version__
    without = frozenset({"delete a group"})

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._loop = asyncio.new_event_loop()
        self._members: dict[str, AIOKafkaConsumer] = {}
        self._admin: AIOKafkaAdminClient = self._run(self._started(AIOKafkaAdminClient))

    def _run(self, what: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(what, PATIENCE_SECONDS))

    async def _started(self, kind: Any, *topics: str, **options: Any) -> Any:
        made = kind(*topics, bootstrap_servers=self.bootstrap_servers, **options)
        await made.start()
        return made

    def close(self) -> None:
        self.leave_all()
        self._run(self._admin.close())
        self._loop.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        _check(self._run(self._admin.create_topics([NewTopic(topic, partitions, 1)])).topic_errors)

    def partitions_of(self, topic: str) -> int:
        if topic not in self._run(self._admin.list_topics()):
            return 0
        (found,) = self._run(self._admin.describe_topics([topic]))
        return len(found["partitions"])

    def grow_topic(self, topic: str, partitions: int) -> None:
        _check(self._run(self._admin.create_partitions({topic: NewPartitions(partitions)})).topic_errors)

    def topic_config(self, topic: str) -> dict[str, str | None]:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        (answer,) = self._run(self._admin.describe_configs(asked))
        ((error, message, _, _, entries),) = answer.resources
        assert error == 0, message
        return {entry[0]: entry[1] for entry in entries}

    def alter_topic_config(self, topic: str, name: str, value: str) -> None:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})]
        (answer,) = self._run(self._admin.alter_configs(asked))
        ((error, message, _, _),) = answer.resources
        assert error == 0, message

    def delete_topic(self, topic: str) -> None:
        _check(self._run(self._admin.delete_topics([topic])).topic_error_codes)

    def produce(self, topic: str, values: Iterable[str], *, idempotent: bool) -> list[tuple[int, int]]:
        async def produce() -> list[tuple[int, int]]:
            producer = await self._started(AIOKafkaProducer, enable_idempotence=idempotent)
            try:
                sent = [await producer.send(topic, value.encode(), key=value.encode()) for value in values]
                found = await asyncio.gather(*sent)
            finally:
                await producer.stop()
            return [(each.partition, each.offset) for each in found]

        return self._run(produce())

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition)
        return int(self._run(self._admin.delete_records({asked: RecordsToDelete(before)}))[asked])

    def join(self, member: str, group_id: str, topic: str) -> None:
        self._members[member] = self._run(
            self._started(
                AIOKafkaConsumer,
                topic,
                client_id=member,
                group_id=group_id,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=100,
                fetch_max_wait_ms=50,
            )
        )

    def leave(self, member: str) -> None:
        self._run(self._members.pop(member).stop())

    def poll(self) -> None:
        async def poll() -> None:
            for consumer in self._members.values():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.seen += [record.value.decode() for record in records]

        self._run(poll())

    def assignments(self) -> dict[str, set[int]]:
        return {
            name: {partition.partition for partition in consumer.assignment()}
            for name, consumer in self._members.items()
        }

    def commit(self) -> None:
        for consumer in self._members.values():
            self._run(consumer.commit())

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        found = self._run(self._admin.list_consumer_group_offsets(group_id))
        return {partition.partition: each.offset for partition, each in found.items()}

    def offsets_at(self, topic: str, timestamp: int, partitions: int) -> dict[int, int | None]:
        async def ask() -> dict[TopicPartition, Any]:
            consumer = await self._started(AIOKafkaConsumer)
            try:
                asked = {TopicPartition(topic, index): timestamp for index in range(partitions)}
                return dict(await consumer.offsets_for_times(asked))
            finally:
                await consumer.stop()

        return {key.partition: None if each is None else each.offset for key, each in self._run(ask()).items()}

    def describe_group(self, group_id: str) -> tuple[str, int]:
        (answer,) = self._run(self._admin.describe_consumer_groups([group_id]))
        (group,) = answer.groups
        assert group[0] == 0
        return group[2], len(group[5])

    def list_groups(self) -> set[str]:
        return {each[0] for each in self._run(self._admin.list_consumer_groups())}

    def delete_group(self, group_id: str) -> None:
        raise NotImplementedError("aiokafka has no such request")


def _check(errors: Iterable[tuple[Any, ...]]) -> None:
    for topic, error, *message in errors:
        assert error == 0, (topic, error, message)
