"""librdkafka's mock cluster as a server of heartbeats: one broker, and a group with one member, which is a real one."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from typing import Any, Final

PATIENCE_SECONDS: Final = 30
_TIMEOUTS: Final = {"session.timeout.ms": 300_000, "heartbeat.interval.ms": 100_000, "max.poll.interval.ms": 600_000}
_TOPIC: Final = "bench"


async def start_mock_cluster(listener: socket.socket) -> Any:
    """Start it; each connection to the socket is answered with its address and its member."""
    from confluent_kafka import Consumer, Producer  # noqa: PLC0415 - only its own process needs it

    consumer = Consumer({"test.mock.num.brokers": 1, "group.id": _TOPIC, "log_level": 0, **_TIMEOUTS})
    (broker,) = consumer.list_topics(timeout=PATIENCE_SECONDS).brokers.values()
    # Nothing but a record makes a topic there.
    producer = Producer({"bootstrap.servers": f"{broker.host}:{broker.port}", "log_level": 0})
    producer.produce(_TOPIC, b"")
    producer.flush(PATIENCE_SECONDS)
    consumer.subscribe([_TOPIC])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the consumer joins its group"
        consumer.poll(0.1)
    described = json.dumps({"port": broker.port, "member": consumer.memberid()}).encode()

    async def describe(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(described)
        writer.close()

    return consumer, await asyncio.start_server(describe, sock=listener)


def mock_heartbeat(port: int) -> tuple[int, bytes]:
    """The port of the mock cluster that is described at another one, and a heartbeat of its member.

    It is version 3, the newest that the mock cluster has. The generation is the one that it gave its first member.
    """
    with socket.create_connection(("127.0.0.1", port)) as connection:
        described = json.loads(b"".join(iter(lambda: connection.recv(65_536), b"")))
    group, member = (struct.pack(">h", len(text)) + text.encode() for text in (_TOPIC, described["member"]))
    frame = struct.pack(">hhih", 12, 3, 1, 5) + b"bench" + group + struct.pack(">i", 2) + member + b"\xff\xff"
    return described["port"], struct.pack(">i", len(frame)) + frame
