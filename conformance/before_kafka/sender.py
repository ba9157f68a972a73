"""A producer of librdkafka that goes on until SIGTERM, as ``Sender.java``.

    python -m conformance.before_kafka.sender TOPIC PARTITIONS NAME EVERY_MS NAME=VALUE ...

The n-th value is NAME-n; prints ``acked VALUE PARTITION OFFSET MS`` or ``failed VALUE PROBLEM`` for each.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import Producer


def _reported(error: Any, message: Any) -> None:
    value = message.value().decode()
    if error is None:
        print("acked", value, message.partition(), message.offset(), round(time.time() * 1000), flush=True)
    else:
        print("failed", value, error.name(), flush=True)


def main() -> None:
    """Send until a signal."""
    topic, partitions, name, every_ms, *pairs = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings: dict[str, Any] = dict(pair.split("=", 1) for pair in pairs)
    producer = Producer(settings)
    number = 0
    while not stopping.is_set():
        producer.produce(topic, f"{name}-{number}".encode(), partition=number % int(partitions), on_delivery=_reported)
        number += 1
        producer.poll(float(every_ms) / 1000)
    producer.flush(60)


if __name__ == "__main__":
    main()
