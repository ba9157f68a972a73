"""librdkafka's mock cluster in a process of its own: prints its address and serves until its standard input ends."""

from __future__ import annotations

import sys

from confluent_kafka import Producer


def main() -> None:
    """One broker on loopback, and the topics of the scripts."""
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0})
    for topic in ("orders", "payments"):
        listed = client.list_topics(topic, timeout=10)
    (broker,) = listed.brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
