"""Producers of Java and librdkafka with a quota, on a real Kafka and on Rejoin: how much of it they reach.

    python -m conformance.clients.admin.throttling

A client that was silent may send what ten windows allow at once, so the first seconds are not measured. It then sends
in bursts, as windows end; so sums of bytes are averaged over eleven windows at both ends of what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from conformance.clients.admin.both_brokers import kafka, rejoin
from conformance.clients.programs import HERE, JAVA, class_path
from conformance.clients.results import DOCUMENT
from conformance.kafka.broker import kafka_version
from rejoin.conform.judged_broker import look
from rejoin.conform.player.connection import BrokerAccess

BYTES_PER_SECOND: Final = 1_000_000
SILENT_SECONDS: Final = 15
WINDOWS: Final = 11
MEASURED_SECONDS: Final = 33 + WINDOWS
START_SECONDS: Final = 60
WITHIN: Final = (0.9, 1.1)
"""Share of its quota that a producer has to reach."""
TOPIC: Final = "throttled"
JAVA_CLIENT, LIBRDKAFKA = "Java", "librdkafka"
CLIENTS: Final = (JAVA_CLIENT, LIBRDKAFKA)
BEGIN: Final = "<!-- written by make client-throttling -->\n"
END: Final = "<!-- end of what make client-throttling writes -->\n"


@dataclass(frozen=True, slots=True)
class ThrottledRun:
    """Bytes per second of a producer while it was measured, and the longest throttle time that it was given."""

    rate: float
    throttle_ms: float

    @property
    def share(self) -> float:
        """Part of the quota that was reached."""
        return self.rate / BYTES_PER_SECOND


def command(client: str, servers: str) -> list[str]:
    """The program of a client."""
    seconds = str(SILENT_SECONDS + MEASURED_SECONDS)
    given = [servers, TOPIC, seconds, client]
    if client == LIBRDKAFKA:
        return [sys.executable, "-m", "conformance.clients.admin.throttled_producer", *given]
    return [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "admin" / "ThrottledProducer.java"), *given]


async def prepare(servers: str) -> None:
    """Make the topic, and give each client its quota."""
    host, port = servers.split(":")
    broker = await look((host, int(port)), BrokerAccess())
    topic = {"name": TOPIC, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    await broker.ask("CreateTopics", {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}, 7)
    entries = [
        {
            "entity": [{"entityType": "client-id", "entityName": client}],
            "ops": [{"key": "producer_byte_rate", "value": float(BYTES_PER_SECOND), "remove": False}],
        }
        for client in CLIENTS
    ]
    answer = await broker.ask("AlterClientQuotas", {"entries": entries, "validateOnly": False}, 1)
    assert not any(each["errorCode"] for each in answer["entries"]), answer


async def measured(client: str, servers: str) -> ThrottledRun:
    """A run of a client's program."""
    process = await asyncio.create_subprocess_exec(
        *command(client, servers), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(START_SECONDS + SILENT_SECONDS + MEASURED_SECONDS):
            out, problem = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    lines = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    if len(lines) != SILENT_SECONDS + MEASURED_SECONDS:
        raise RuntimeError(f"{client} measured {len(lines)} s: {problem.decode()[-2000:]}")
    first, last = lines[SILENT_SECONDS : SILENT_SECONDS + WINDOWS], lines[-WINDOWS:]
    stored, seconds = (sum(line[key] for line in last) - sum(line[key] for line in first) for key in ("stored", "at"))
    rate = stored / seconds
    return ThrottledRun(rate, max(line["throttle_ms"] for line in lines))


async def on(broker: AbstractAsyncContextManager[str]) -> dict[str, ThrottledRun]:
    """Both clients on a broker at one time, each with its own quota."""
    async with broker as servers:
        await prepare(servers)
        runs = await asyncio.gather(*(measured(client, servers) for client in CLIENTS))
    return dict(zip(CLIENTS, runs, strict=True))


def table(found: dict[str, dict[str, ThrottledRun]]) -> str:
    """Rows by client and broker."""
    rows = ["| producer | broker | of 1 MB/s | longest throttle time |", "|---|---|---|---|"]
    for client in CLIENTS:
        for broker, runs in found.items():
            run = runs[client]
            rows.append(f"| {client} | {broker} | {run.share:.3f} | {run.throttle_ms / 1_000:.1f} s |")
    return "\n".join(rows)


async def compare() -> dict[str, Any]:
    """Run on both brokers."""
    return {f"Kafka {kafka_version()}": await on(kafka({})), "Rejoin": await on(rejoin({}))}


def main() -> int:
    """Print the table and write it; 1 where a share on Rejoin is not within the bounds."""
    class_path(HERE / "java")
    found = asyncio.run(compare())
    text = table(found)
    print(text)
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.split(END)[1]}")
    lowest, highest = WITHIN
    return 0 if all(lowest <= run.share <= highest for run in found["Rejoin"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
