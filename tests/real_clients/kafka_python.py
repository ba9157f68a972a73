"""kafka-python."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from queue import Queue
from threading import Thread
from typing import Any, Final

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from tests.real_clients.client import PATIENCE_SECONDS, Client

POLL_MS: Final = 500


class Member:
    """A consumer in a thread of its own, which polls for longer than a rebalance takes.

    kafka-python 3.0.12 forgets a rebalance in which its poll times out: it has no partitions then, and no heartbeats.
    """

    def __init__(self, consumer: Any, seen: list[str]) -> None:
        self.assignment: set[int] = set()
        self._consumer = consumer
        self._seen = seen
        self._commits: Queue[Future[None]] = Queue()
        self._closing = False
        self._done: Future[None] = Future()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closing:
                for records in self._consumer.poll(POLL_MS).values():
                    self._seen += [record.value.decode() for record in records]
                self.assignment = {partition.partition for partition in self._consumer.assignment()}
                while not self._commits.empty():
                    self._consumer.commit()
                    self._commits.get().set_result(None)
            self._consumer.close()
        except BaseException as problem:
            self._done.set_exception(problem)

    def check(self) -> None:
        """Raise what ended the thread."""
        if self._done.done():
            self._done.result()

    def commit(self) -> None:
        """Commit between two polls, and wait for that."""
        future: Future[None] = Future()
        self._commits.put(future)
        future.result(PATIENCE_SECONDS)

    def close(self) -> None:
        """Leave the group."""
        self._closing = True
        self._thread.join(PATIENCE_SECONDS)
        self.check()


class KafkaPython(Client):
    name = "kafka-python"
    version = kafka.__version__

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, client_id="admin")
        self._members: dict[str, Member] = {}

    def close(self) -> None:
        self.leave_all()
        self._admin.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1)])

    def partitions_of(self, topic: str) -> int:
        if topic not in self._admin.list_topics():
            return 0
        (found,) = self._admin.describe_topics([topic])
        return len(found["partitions"])

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions({topic: NewPartitions(partitions)})

    def topic_config(self, topic: str) -> dict[str, str | None]:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        found: Any = self._admin.describe_configs(asked, config_filter="all")
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def alter_topic_config(self, topic: str, name: str, value: str) -> None:
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def produce(self, topic: str, values: Iterable[str], *, idempotent: bool) -> list[tuple[int, int]]:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, enable_idempotence=idempotent)
        try:
            sent = [producer.send(topic, value.encode(), key=value.encode()) for value in values]
            found = [future.get(PATIENCE_SECONDS) for future in sent]
        finally:
            producer.close()
        return [(each.partition, each.offset) for each in found]

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition)
        return int(self._admin.delete_records({asked: before})[asked]["low_watermark"])

    def join(self, member: str, group_id: str, topic: str) -> None:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=self.bootstrap_servers,
            client_id=member,
            group_id=group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            fetch_max_wait_ms=50,
        )
        self._members[member] = Member(consumer, self.seen)

    def leave(self, member: str) -> None:
        self._members.pop(member).close()

    def poll(self) -> None:
        time.sleep(0.01)
        for member in self._members.values():
            member.check()

    def assignments(self) -> dict[str, set[int]]:
        return {name: member.assignment for name, member in self._members.items()}

    def commit(self) -> None:
        for member in self._members.values():
            member.commit()

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        found = self._admin.list_group_offsets({group_id: None})
        return {partition.partition: each.offset for partition, each in found[group_id].items()}

    def offsets_at(self, topic: str, timestamp: int, partitions: int) -> dict[int, int | None]:
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap_servers)
        try:
            found = consumer.offsets_for_times({TopicPartition(topic, index): timestamp for index in range(partitions)})
        finally:
            consumer.close()
        return {key.partition: None if each is None else each.offset for key, each in found.items()}

    def describe_group(self, group_id: str) -> tuple[str, int]:
        found = self._admin.describe_groups([group_id])[group_id]
        return found["group_state"], len(found["members"])

    def list_groups(self) -> set[str]:
        return {each["group_id"] for each in self._admin.list_groups()}

    def delete_group(self, group_id: str) -> None:
        self._admin.delete_groups([group_id])
