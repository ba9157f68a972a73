"""Produce and Fetch of large and small batches, beside a server that only copies the bytes and computes the CRC.

Two more servers show what of the difference is a broker's own work. One also keeps the bytes, as a log does. The other
does the least that a broker in Python can do with a Produce: it finds the batch in a frame that it knows, validates it
record by record, keeps it as the log of the service does, and answers. It has no topics, no versions, no errors and no
readers. For batches of 16 kB it already takes about twice as long as the server that copies.

One process each, four connections, one request at a time on each. Rounds alternate; what counts is the processor time
of the server for each request. Memory that a virtual machine has to get from its host first costs more than all else,
so each round is run twice, and the second one counts.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.heartbeats.kafka import kafka_port
from benchmarks.kafka.plain_servers import start_checking, start_copying, start_keeping
from benchmarks.server_load import ServerProcess, loop_factory, never_asleep, on_last_core, served
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector
from rejoin.protocol.message import Request
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.registry import CREATE_TOPICS, DELETE_TOPICS, FETCH, PRODUCE, Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records

ROUNDS: Final = 5
CONNECTIONS: Final = 4
SIZES: Final = {"1 MiB": (2**20, 200), "16 kB": (16_384, 2_000)}
"""Bytes of a batch, and how many requests make a round."""
AT_LEAST: Final = 0.5
FAILS_BELOW: Final = {
    ("Produce", "1 MiB"): 0.25,
    ("Fetch", "1 MiB"): 0.4,
    ("Produce", "16 kB"): 0.12,
    ("Fetch", "16 kB"): 0.25,
}
"""Half of what is reached in memory: below that something was lost."""
TOPIC: Final = "bench"
PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
PLAIN: Final = ("copy", "keep", "check")
"""The servers for comparison: one copies and computes the CRC, one keeps the bytes, one checks the batch as well."""
_TRIES: Final = 100


async def start_service(listener: socket.socket, data: Path | None = None) -> Any:
    """The whole service, in memory or on disk."""
    logs.configure("warning")
    port = listener.getsockname()[1]
    listener.close()
    app = App(Options(settings=Settings(), port=port, kafka_port=0, data=data))
    await app.start()
    calm_collector()
    return app


def framed(api: Api, version: int, request: Request) -> bytes:
    """A request as it travels."""
    codec = codec_of(api.key, version)
    assert codec is not None, "the version is known"
    return codec.request_frame(1, "bench", request)


@dataclass(slots=True)
class Cost:
    """What one round found."""

    micros: float
    per_second: float


class _Client(asyncio.Protocol):
    """Sends a request until enough are answered."""

    def __init__(self, request: bytes, left: list[int], done: asyncio.Event) -> None:
        self._request = request
        self._left = left
        self._done = done
        self._missing = 0
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def send(self) -> None:
        if self._left[0] > 0:
            self._left[0] -= 1
            self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            if len(self._head) < 4:
                return
            data, self._head = self._head, b""
            self._missing = 4 + int.from_bytes(data[:4], "big")
        self._missing -= len(data)
        if not self._missing:
            self._left[1] -= 1
            if self._left[1] == 0:
                self._done.set()
            self.send()


async def _round(server: ServerProcess, port: int, request: bytes, count: int) -> Cost:
    loop = asyncio.get_running_loop()
    left, done = [count, count], asyncio.Event()
    clients = [
        (await loop.create_connection(lambda: _Client(request, left, done), "127.0.0.1", port))[1]
        for _ in range(CONNECTIONS)
    ]
    cpu, began = server.cpu_seconds(), time.perf_counter()
    with never_asleep():
        for client in clients:
            client.send()
        await done.wait()
    took, used = time.perf_counter() - began, server.cpu_seconds() - cpu
    for client in clients:
        client.transport.abort()
    return Cost(used / count * 1e6, count / took)


def batch_of(size: int) -> bytes:
    """A batch of this size, of records with 1,000 bytes each."""
    records = write_records(DefaultRecord(index, 0, None, bytes(1_000)) for index in range(size // 1_010))
    count = size // 1_010
    return sealed(BatchHeader(0, 0, -1, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count), records)


def produce(batch: bytes) -> bytes:
    """A Produce of one batch."""
    data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=batch),))
    return framed(PRODUCE, PRODUCE_VERSION, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,)))


def fetch(size: int) -> bytes:
    """A Fetch of as many bytes from the beginning."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    topics = (FetchTopic(topic=TOPIC, partitions=(partition,)),)
    return framed(FETCH, FETCH_VERSION, FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=size, topics=topics))


def _ask(port: int, *requests: bytes) -> int:
    """Send requests, each when the one before is answered; the size of the last answer."""
    size = 0
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        for request in requests:
            connection.sendall(request)
            size = struct.unpack(">i", answers.read(4))[0]
            assert len(answers.read(size)) == size, "the server answers"
    return size


def new_topic(port: int) -> None:
    """An empty topic in place of the one that was there, whose memory is given back."""
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
    gone = DeleteTopicsRequest(topic_names=(TOPIC,), timeout_ms=1_000)
    _ask(port, framed(DELETE_TOPICS, 3, gone), framed(CREATE_TOPICS, 4, CreateTopicsRequest(topics=(topic,))))


def _begin(port: int, batch: bytes) -> None:
    """Produce a batch, as soon as the partition is served, and see that it can be fetched."""
    for _ in range(_TRIES):
        _ask(port, produce(batch))
        if _ask(port, fetch(len(batch))) >= len(batch):
            return
        time.sleep(0.05)
    raise AssertionError("what was produced cannot be fetched")


def measure() -> dict[tuple[str, str], dict[str, Cost]]:
    """By what is done and the size of a batch: the median of each server's rounds."""
    found: dict[tuple[str, str, str], list[Cost]] = {}
    batches = {size: batch_of(length) for size, (length, _) in SIZES.items()}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
        starts: dict[str, Callable[..., Any]] = {
            "copy": start_copying,
            "keep": start_keeping,
            "check": partial(start_checking, requests={produce(batch): batch for batch in batches.values()}),
            "memory": start_service,
            "--data": partial(start_service, data=folder),
        }
        servers = {name: stack.enter_context(served(start)) for name, start in starts.items()}
        ports = {name: each.port if name in PLAIN else kafka_port(each.port) for name, each in servers.items()}
        with on_last_core(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            for _, (size, (_, count)), name in product(range(ROUNDS), SIZES.items(), servers):
                port, batch = ports[name], batches[size]
                for is_measured in (False, True):
                    # The first time makes the memory ready that the second one uses.
                    if name not in PLAIN:
                        new_topic(port)
                    if name != "check":
                        _begin(port, batch)
                    for doing, request in (("Produce", produce(batch)), ("Fetch", fetch(len(batch)))):
                        if doing == "Produce" or (is_measured and name != "check"):
                            cost = runner.run(_round(servers[name], port, request, count))
                            if is_measured:
                                found.setdefault((doing, size, name), []).append(cost)
    table: dict[tuple[str, str], dict[str, Cost]] = {}
    for (doing, size, name), rows in found.items():
        cost = Cost(median(each.micros for each in rows), median(each.per_second for each in rows))
        table.setdefault((doing, size), {})[name] = cost
    return table


def main() -> int:
    """Measure and print; 1 if half of the speed is lost."""
    table = Table(title="Batches over Kafka's protocol: µs of the server's CPU a request, median")
    for column in ("request", "batch", "copy", "keep", "check", "memory", "share", "--data", "share"):
        table.add_column(column, justify="left" if column in {"request", "batch"} else "right")
    found = measure()
    for (doing, size), costs in found.items():
        shown = {name: f"{cost.micros:,.0f}" for name, cost in costs.items()}
        shares = [f"{_share(costs, name):.2f}" for name in ("memory", "--data")]
        plain = [shown.get(name, "–") for name in PLAIN]
        table.add_row(doing, size, *plain, shown["memory"], shares[0], shown["--data"], shares[1])
    console = printer()
    console.print(table)
    console.print(f"share: of the speed of copy, which computes the CRC and forgets; aim in memory {AT_LEAST}")
    for (doing, size), costs in found.items():
        if doing == "Produce":
            of = [_share(costs, *pair) for pair in (("check",), ("memory", "check"), ("memory", "keep"))]
            console.print(f"Produce of {size}: check {of[0]:.2f} of copy;", end=" ")
            console.print(f"memory {of[1]:.2f} of check, {of[2]:.2f} of keep")
    return int(any(_share(found[key], "memory") < least for key, least in FAILS_BELOW.items() if key in found))


def _share(costs: dict[str, Cost], name: str, of: str = "copy") -> float:
    # The clock of a process may stand still over a few requests.
    return costs[of].micros / max(costs[name].micros, 0.01)


if __name__ == "__main__":
    sys.exit(main())
