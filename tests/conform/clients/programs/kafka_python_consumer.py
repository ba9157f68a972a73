"""kafka-python until SIGTERM; its addresses, topic and group are arguments."""

from __future__ import annotations

import signal
import sys

from kafka import KafkaConsumer

ended: list[int] = []
signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
servers, topic, group = sys.argv[1:]
consumer = KafkaConsumer(
    topic,
    bootstrap_servers=servers,
    group_id=group,
    auto_offset_reset="earliest",
    heartbeat_interval_ms=200,
    auto_commit_interval_ms=200,
)
while not ended:
    consumer.poll(100)
consumer.close()
