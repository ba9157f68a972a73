"""The brokers' state at the end, asked directly: records of a topic, and offsets of a group."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

TOPIC: Final = "orders"
TRANSFORMED: Final = "transformed"
_SECONDS: Final = 60.0


def values_of(servers: str, topic: str, partitions: int) -> dict[tuple[int, int], str]:
    """All committed records of a topic by partition and offset."""
    settings = {"bootstrap.servers": servers, "group.id": "ledger", "enable.auto.commit": False}
    consumer = Consumer(settings | {"enable.partition.eof": True, "isolation.level": "read_committed"})
    found: dict[tuple[int, int], str] = {}
    ended: set[int] = set()
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        end = time.monotonic() + _SECONDS
        while len(ended) < partitions:
            assert time.monotonic() < end, f"{topic} could not be read to its end"
            record = consumer.poll(1)
            if record is None:
                continue
            error = record.error()
            partition, offset = record.partition(), record.offset()
            assert partition is not None, "a record has a partition"
            if error is None:
                assert offset is not None, "a record has an offset"
                found[partition, offset] = (record.value() or b"").decode()
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
    finally:
        consumer.close()
    return found


def committed_to_the_end(servers: str, group: str, topic: str, partitions: int) -> str:
    """Offsets that are missing among those committed by a group; empty where each is the end of its partition."""
    admin = AdminClient({"bootstrap.servers": servers})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in range(partitions)])
    done = admin.list_consumer_group_offsets([asked])[group].result(_SECONDS)
    committed = {each.partition: each.offset for each in done.topic_partitions}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "ledger"})
    try:
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), _SECONDS)[1]
            for number in range(partitions)
        }
    finally:
        consumer.close()
    behind = {number: (committed.get(number), end) for number, end in ends.items() if committed.get(number) != end}
    return f"committed and end by partition: {behind}" if behind else ""
