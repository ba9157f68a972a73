"""A million records of 100 bytes through confluent-kafka: produced, then consumed, beside kfake and a real Kafka.

Every server is a process of its own, and works alone while it is measured, once one record has come through it: what
it loads at first use is not a price of records. What counts is its processor time for each record. Those whose runtime
is not there (Go, Java with Maven) are left out, and named.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import ServerProcess

RECORDS: Final = 1_000_000
QUICK_RECORDS: Final = 100_000
VALUE: Final = b"x" * 100
AT_MOST: Final = 4.0
"""The processor time of Rejoin for a record, as a multiple of kfake's, in memory and with ``--data``."""
OTHERS: Final = ("kfake", "Kafka 4.4")
TOPIC: Final = "bench"
WARM_UP_TOPIC: Final = "warm-up"
Settings: TypeAlias = dict[str, str | int | float | bool]
"""Those of a client."""
_DELAY: Final = "group.initial.rebalance.delay.ms"
_KFAKE: Final = Path(__file__).parents[2] / "conformance" / "judged" / "kfake"


@dataclass(slots=True)
class Cost:
    """What one server took for all records: its processor time, the time that passed, its memory at the end."""

    produce_cpu: float
    produce: float
    consume_cpu: float
    consume: float
    resident: int


@contextmanager
def rejoin(*options: str) -> Iterator[tuple[str, int]]:
    """``rejoin serve``: its address and process."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--kafka-port-file", str(port_file)]
        arguments = [
            *command,
            "--log-level",
            "warning",
            "-c",
            f"{_DELAY}=0",
            *(option.replace("FOLDER", folder) for option in options),
        ]
        with _process(arguments) as process:
            yield f"127.0.0.1:{_wait_for(lambda: port_file.exists() and port_file.read_text().strip())}", process.pid


@contextmanager
def kfake() -> Iterator[tuple[str, int]]:
    """franz-go's fake broker."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kfake"
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=_KFAKE, check=True, capture_output=True)
        with _process([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None, "it prints its address"
            yield process.stdout.readline().decode().strip(), process.pid


@contextmanager
def _process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(found: Callable[[], Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < until, "the server starts"
        time.sleep(0.02)
    return result


def measure_one(address: str, pid: int, records: int) -> Cost:
    """Produce and consume all records."""
    settings: Settings = {"bootstrap.servers": address, "log_level": 0}
    admin = AdminClient(settings)
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(WARM_UP_TOPIC, 1, 1)]).values():
        created.result(30)
    server = ServerProcess(pid, 0, has_passing_threads=True)  # as a JVM has
    _produce(settings, WARM_UP_TOPIC, 1)
    _consume(settings, WARM_UP_TOPIC, 1).close()
    cpu, began = server.cpu_seconds(), time.perf_counter()
    _produce(settings, TOPIC, records)
    produce_cpu, produce = server.cpu_seconds() - cpu, time.perf_counter() - began
    cpu, began = server.cpu_seconds(), time.perf_counter()
    consumer = _consume(settings, TOPIC, records)
    consume_cpu, consume = server.cpu_seconds() - cpu, time.perf_counter() - began
    consumer.close()
    return Cost(produce_cpu, produce, consume_cpu, consume, server.resident_bytes())


def _produce(settings: Settings, topic: str, records: int) -> None:
    producer = Producer({**settings, "linger.ms": 20, "queue.buffering.max.messages": 200_000, "acks": "all"})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0, "everything is acknowledged"


def _consume(settings: Settings, topic: str, records: int) -> Consumer:
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    count = 0
    while count < records:
        messages = consumer.consume(min(10_000, records - count), timeout=30)
        assert messages, f"{count} of {records} records were consumed"
        count += len(messages)
    return consumer


def measure(records: int) -> dict[str, Cost]:
    """Each server that can run here."""
    found: dict[str, Cost] = {}
    for name, options in (("memory", ()), ("--data", ("--data", "FOLDER/data"))):
        with rejoin(*options) as (address, pid):
            found[name] = measure_one(address, pid, records)
    if "kfake" in OTHERS and shutil.which("go"):
        with kfake() as (address, pid):
            found["kfake"] = measure_one(address, pid, records)
    if "Kafka 4.4" in OTHERS and shutil.which("mvn") and shutil.which("java"):
        found["Kafka 4.4"] = asyncio.run(_measure_kafka(records))
    return found


async def _measure_kafka(records: int) -> Cost:
    # Imported here: what starts a broker is not needed for the others.
    from conformance.kafka.broker import Cluster, class_path  # noqa: PLC0415

    async with Cluster(await class_path(), 1, {_DELAY: "0"}) as cluster:
        host, port = cluster.addresses[1]
        return await asyncio.to_thread(measure_one, f"{host}:{port}", cluster.pid(1), records)


def main(*, quick: bool = False) -> int:
    """Measure and print; 1 if a bound is missed."""
    records = QUICK_RECORDS if quick else RECORDS
    found = measure(records)
    table = Table(title=f"{records:,} records of {len(VALUE)} bytes through confluent-kafka")
    for column in ("server", "produce: µs CPU each", "records/s", "consume: µs CPU each", "records/s ", "memory"):
        table.add_column(column, justify="left" if column == "server" else "right")
    for name, cost in found.items():
        table.add_row(
            name,
            f"{cost.produce_cpu / records * 1e6:.2f}",
            f"{records / cost.produce:,.0f}",
            f"{cost.consume_cpu / records * 1e6:.2f}",
            f"{records / cost.consume:,.0f}",
            f"{cost.resident / 2**20:,.0f} MiB",
        )
    console = printer()
    console.print(table)
    ratios: dict[str, float] = {}
    if "kfake" in found:
        ratios = {name: _cpu(found[name]) / _cpu(found["kfake"]) for name in ("memory", "--data")}
        for name, ratio in ratios.items():
            console.print(f"{name} ÷ kfake, by CPU: {ratio:.2f}, wanted ≤ {AT_MOST}")
    missing = [name for name in OTHERS if name not in found]
    if missing:
        console.print(f"not here: {', '.join(missing)} (they want Go, or Java and Maven)")
    return int(any(ratio > AT_MOST for ratio in ratios.values()))


def _cpu(cost: Cost) -> float:
    return cost.produce_cpu + cost.consume_cpu


if __name__ == "__main__":
    sys.exit(main())
