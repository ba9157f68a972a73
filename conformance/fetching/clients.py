"""Real consumers with a rack at this emulator's brokers: ``python -m conformance.fetching.clients``.

Java's (by Kafka's console consumer) and librdkafka's each read a topic that broker 1 leads, in the rack of broker 2.
Prints the bytes that each broker gave them, and fails where the follower did not give most.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from conformance.clients.programs import HERE, JAVA, class_path
from conformance.clients.tools import CONSUMER
from conformance.fetching.script import SELECTOR
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.testing import running

TOPIC: Final = "orders"
RECORDS: Final = 200
RECORD_BYTES: Final = 2_000
RACK: Final = "b"
_PATIENCE_SECONDS: Final = 120.0


async def _java(servers: str) -> int:
    """Read with Kafka's console consumer; returns how many records it printed."""
    jars = await asyncio.to_thread(class_path, HERE / "tools")
    wanted = ("--topic", TOPIC, "--partition", "0", "--offset", "earliest", "--max-messages", str(RECORDS))
    # Small fetches: the first one goes to the leader, which names the replica.
    properties = (f"client.rack={RACK}", "max.partition.fetch.bytes=20000")
    given = (part for each in properties for part in ("--command-property", each))
    process = await asyncio.create_subprocess_exec(
        *(*JAVA, "-cp", jars, CONSUMER, "--bootstrap-server", servers, *wanted, *given),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return said.count(b"\n")


def _librdkafka(servers: str) -> int:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "client.rack": RACK, "max.partition.fetch.bytes": 20_000}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    count = 0
    for _ in range(int(_PATIENCE_SECONDS)):
        count += sum(record.error() is None for record in consumer.consume(RECORDS - count, timeout=1.0))
        if count >= RECORDS:
            break
    consumer.close()
    return count


async def main() -> int:
    """Let each consumer read; returns how many did not read from the follower."""
    failed = 0
    settings = {"broker.rack": "a,b,c", "replica.selector.class": SELECTOR}
    for name in ("java", "librdkafka"):
        async with running(brokers=3, topics={TOPIC: 1}, settings=settings) as coordinator:
            cluster = coordinator.app
            assert isinstance(cluster, BrokerCluster), "there are three brokers"
            for _ in range(RECORDS):
                await coordinator.produce(TOPIC, 0, ["x" * RECORD_BYTES])
            servers = coordinator.bootstrap_servers
            read = await _java(servers) if name == "java" else await asyncio.to_thread(_librdkafka, servers)
            given = [app.metrics.api("Fetch").bytes_out for app in cluster.apps]
        is_near = read == RECORDS and given[1] > RECORDS * RECORD_BYTES and sum(given) - given[1] < given[1] / 10
        failed += not is_near
        print(f"{name}: {read} records; bytes by broker {given}: {'near' if is_near else 'NOT from the follower'}")
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
