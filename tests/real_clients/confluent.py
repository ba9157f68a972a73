"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import confluent_kafka
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.real_clients.client import PATIENCE_SECONDS, Client


class Confluent(Client):
    name = "confluent-kafka"
    version = str(confluent_kafka.version())

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "client.id": "admin"})
        self._members: dict[str, Any] = {}

    def close(self) -> None:
        for consumer in self._members.values():
            consumer.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        _done(self._admin.create_topics([NewTopic(topic, partitions)]))

    def partitions_of(self, topic: str) -> int:
        found = self._admin.list_topics(timeout=PATIENCE_SECONDS).topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def grow_topic(self, topic: str, partitions: int) -> None:
        _done(self._admin.create_partitions([NewPartitions(topic, partitions)]))

    def topic_config(self, topic: str) -> dict[str, str | None]:
        config = _done(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in config.items()}

    def alter_topic_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        _done(self._admin.incremental_alter_configs([asked]))

    def delete_topic(self, topic: str) -> None:
        _done(self._admin.delete_topics([topic]))

    def produce(self, topic: str, values: Iterable[str], *, idempotent: bool) -> list[tuple[int, int]]:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "enable.idempotence": idempotent})
        written: list[tuple[int, int]] = []
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                written.append((message.partition(), message.offset()))
            else:
                errors.append(error)

        for value in values:
            producer.produce(topic, value.encode(), key=value.encode(), on_delivery=delivered)
        producer.flush(PATIENCE_SECONDS)
        assert not errors, errors[0]
        return written

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        return int(_done(self._admin.delete_records([TopicPartition(topic, partition, before)])).low_watermark)

    def join(self, member: str, group_id: str, topic: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "client.id": member,
                "group.id": group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.subscribe([topic])
        self._members[member] = consumer

    def leave(self, member: str) -> None:
        self._members.pop(member).close()

    def poll(self) -> None:
        for consumer in self._members.values():
            for message in consumer.consume(1_000, 0.02):
                assert message.error() is None, message.error()
                self.seen.append(message.value().decode())

    def assignments(self) -> dict[str, set[int]]:
        return {
            name: {partition.partition for partition in consumer.assignment()}
            for name, consumer in self._members.items()
        }

    def commit(self) -> None:
        for consumer in self._members.values():
            try:
                committed = consumer.commit(asynchronous=False)
            except KafkaException as problem:
                # A member that has read nothing since the last rebalance has nothing to commit.
                if problem.args[0].code() != KafkaError._NO_OFFSET:
                    raise
            else:
                assert all(each.error is None for each in committed), committed

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        found = _done(self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)]))
        return {each.partition: each.offset for each in found.topic_partitions if each.topic == topic}

    def offsets_at(self, topic: str, timestamp: int, partitions: int) -> dict[int, int | None]:
        asked = {TopicPartition(topic, index): OffsetSpec.for_timestamp(timestamp) for index in range(partitions)}
        found = {key.partition: future.result() for key, future in self._admin.list_offsets(asked).items()}
        return {index: info.offset if info.offset >= 0 else None for index, info in found.items()}

    def describe_group(self, group_id: str) -> tuple[str, int]:
        found = _done(self._admin.describe_consumer_groups([group_id]))
        return found.state.name, len(found.members)

    def list_groups(self) -> set[str]:
        return {group.group_id for group in self._admin.list_consumer_groups().result().valid}

    def delete_group(self, group_id: str) -> None:
        _done(self._admin.delete_consumer_groups([group_id]))


def _done(futures: dict[Any, Any]) -> Any:
    """The result of the only request."""
    (future,) = futures.values()
    return future.result(PATIENCE_SECONDS)
