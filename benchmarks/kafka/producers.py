"""Our Producer beside aiokafka and kafka-python: the client's processor time for each record of 100 bytes.

All write to one `rejoin serve`, which is a process of its own, in rounds that alternate; the best round of each counts.
With and without keys, idempotent and not; batches, linger and acks are the same for all.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from kafka import KafkaProducer
from rich.table import Table

from benchmarks import printer
from benchmarks.kafka.throughput import rejoin as served
from rejoin import Producer

RECORDS: Final = 30_000
ROUNDS: Final = 3
VALUE: Final = b"x" * 100
AT_MOST: Final = 1.0
"""Our processor time for a record, as a multiple of the better of the two others."""

_SETTINGS: Final[dict[str, Any]] = {"acks": "all", "linger_ms": 5}
_KEYS: Final = [b"customer-%d" % number for number in range(1_000)]

Run = Callable[[str, str, bool, bool], Awaitable[None]]
"""Writes all records to the topic of an address: with keys or not, idempotent or not."""


async def ours(address: str, topic: str, keys: bool, idempotent: bool) -> None:
    settings = {**_SETTINGS, "enable_idempotence": idempotent}
    async with Producer(bootstrap_servers=address, **settings) as producer:
        send = producer.send
        for number in range(RECORDS):
            last = await send(topic, VALUE, key=_KEYS[number % 1_000] if keys else None)
        await producer.flush()
        last.result()


async def aiokafka(address: str, topic: str, keys: bool, idempotent: bool) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=idempotent, **_SETTINGS)
    await producer.start()
    send = producer.send
    for number in range(RECORDS):
        last = await send(topic, VALUE, key=_KEYS[number % 1_000] if keys else None)
    await producer.flush()
    last.result()
    await producer.stop()


async def kafka_python(address: str, topic: str, keys: bool, idempotent: bool) -> None:
    def run() -> None:
        producer = KafkaProducer(bootstrap_servers=address, enable_idempotence=idempotent, **_SETTINGS)
        send = producer.send
        for number in range(RECORDS):
            last = send(topic, VALUE, key=_KEYS[number % 1_000] if keys else None)
        producer.flush()
        last.get(0)
        producer.close()

    await asyncio.to_thread(run)


CLIENTS: Final[dict[str, Run]] = {"Rejoin": ours, "aiokafka": aiokafka, "kafka-python": kafka_python}
CASES: Final = {
    "without keys": (False, False),
    "with keys": (True, False),
    "without keys, idempotent": (False, True),
    "with keys, idempotent": (True, True),
}


def measure() -> dict[str, dict[str, float]]:
    """Microseconds for a record: by case, by client."""
    found: dict[str, dict[str, float]] = {}
    with served("--topic", "bench:6") as (address, _):
        for case, (keys, idempotent) in CASES.items():
            times: dict[str, list[float]] = {name: [] for name in CLIENTS}
            for _ in range(ROUNDS):
                for name, run in CLIENTS.items():
                    began = time.process_time()
                    asyncio.run(_run(run, address, keys, idempotent))
                    times[name].append(time.process_time() - began)
            found[case] = {name: min(each) / RECORDS * 1e6 for name, each in times.items()}
    return found


async def _run(run: Run, address: str, keys: bool, idempotent: bool) -> None:
    await run(address, "bench", keys, idempotent)


def main() -> int:
    """Print the table; 1 if we need more than the better of the others."""
    found = measure()
    table = Table(title="processor time of the client for a record, in microseconds", title_justify="left")
    table.add_column("")
    for name in CLIENTS:
        table.add_column(name, justify="right")
    table.add_column("ratio", justify="right")
    worst = 0.0
    for case, times in found.items():
        ratio = times["Rejoin"] / min(cost for name, cost in times.items() if name != "Rejoin")
        worst = max(worst, ratio)
        table.add_row(case, *(f"{times[name]:.1f}" for name in CLIENTS), f"{ratio:.2f}")
    printer().print(table)
    return 0 if worst <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
