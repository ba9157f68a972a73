"""librdkafka's producer, as fast as the broker lets it: each second a line with the bytes that are stored so far.

python -m conformance.clients.admin.throttled_producer SERVERS TOPIC SECONDS CLIENT_ID
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from confluent_kafka import Producer

VALUE = bytes(1_000)


def main() -> None:
    """Produce for so many seconds. The process ends with records unsent."""
    servers, topic, seconds, client_id = sys.argv[1:]
    stored, longest = 0, 0.0

    def delivered(error: Any, _: Any) -> None:
        nonlocal stored
        stored += len(VALUE) if error is None else 0

    def throttled(event: Any) -> None:
        nonlocal longest
        longest = max(longest, event.throttle_time * 1_000)

    config = {
        "bootstrap.servers": servers,
        "client.id": client_id,
        "acks": 1,
        "queue.buffering.max.kbytes": 4_000,
        "batch.size": 100_000,
        "message.timeout.ms": 600_000,
        "throttle_cb": throttled,
    }
    producer = Producer(config)
    began = time.monotonic()
    for second in range(1, int(seconds) + 1):
        while (left := began + second - time.monotonic()) > 0:
            try:
                producer.produce(topic, VALUE, on_delivery=delivered)
                producer.poll(0)
            except BufferError:
                producer.poll(min(left, 0.05))
        at = time.monotonic() - began
        print(json.dumps({"at": at, "stored": stored, "throttle_ms": longest}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
