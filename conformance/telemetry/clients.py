"""Real clients push their metrics to this broker, and each is compared with what the client itself reports.

``python -m conformance.telemetry.clients`` runs a Java consumer and one of librdkafka, and writes the last payload of
each, with what the client said, to ``tests/golden/telemetry``.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import math
import sys
import tempfile
import time
from typing import Any, Final

import confluent_kafka

from conformance.kafka.broker import JAVA, class_path, kafka_version
from conformance.telemetry.record import GOLDEN, HERE
from conformance.telemetry.script import CLIENT_METRICS
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.embedded.client_metrics import decode_metrics
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.wire.compression import decompress

PATIENCE_SECONDS: Final = 90.0
INTERVAL_MS: Final = 1_000
LIFE_SECONDS: Final = 6.0
COMPARED: Final = {
    "java": (
        "consumer.time.between.poll.max",
        "consumer.coordinator.rebalance.latency.max",
        "consumer.coordinator.rebalance.latency.avg",
        "consumer.coordinator.commit.latency.max",
        "consumer.coordinator.assigned.partitions",
        "consumer.fetch.manager.fetch.latency.max",
    ),
    "librdkafka": ("consumer.coordinator.assigned.partitions",),
}
"""Values that stand still between the client's own report and its last push."""

_ONE_IN: Final = 0.02


async def subscribe(coordinator: GroupCoordinator) -> None:
    """Ask every client for all of its metrics."""
    configs = tuple(
        IncrementallyAlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("interval.ms", str(INTERVAL_MS)), ("metrics", "*"))
    )
    resource = IncrementalAlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="all", configs=configs)
    await coordinator.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))


async def java(bootstrap_servers: str) -> dict[str, Any]:
    """The life of a Java consumer; returns its own metrics."""
    jars = await class_path()
    source = str(HERE / "MeasuringConsumer.java")
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        process = await asyncio.create_subprocess_exec("javac", "-cp", jars, "-d", folder, source)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.wait()
        command = (*JAVA, "-cp", f"{folder}:{jars}", "MeasuringConsumer", bootstrap_servers)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, _ = await process.communicate()
    pairs = [line.split("=", 1) for line in out.decode().splitlines() if "=" in line]
    return {name: float(value) for name, value in pairs if name in COMPARED["java"]}


def librdkafka(bootstrap_servers: str) -> dict[str, Any]:
    """The life of a consumer of librdkafka; returns what its statistics say."""
    seen: list[dict[str, Any]] = []
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "measured-librdkafka",
        "client.id": "librdkafka",
        "auto.offset.reset": "earliest",
        "statistics.interval.ms": 500,
        "stats_cb": lambda text: seen.append(json.loads(text)),
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["orders"])
    end = time.monotonic() + LIFE_SECONDS
    while time.monotonic() < end:
        consumer.poll(0.1)
    consumer.close()
    assigned = max(each["cgrp"]["assignment_size"] for each in seen if "cgrp" in each)
    return {"consumer.coordinator.assigned.partitions": float(assigned)}


async def payloads(coordinator: GroupCoordinator, client_id: str) -> list[bytes]:
    """The payloads that a client pushed, unpacked."""
    found = []
    for line in (await coordinator.request_log()).splitlines():
        start = line.find("{")
        entry, _ = json.JSONDecoder().raw_decode(line[start:]) if start >= 0 else ({}, 0)
        header = entry.get("requestHeader", {})
        if header.get("requestApiKey") == 72 and header.get("clientId") == client_id:
            request = entry["request"]
            packed = base64.b64decode(request["metrics"])
            if packed:
                found.append(bytes(decompress(request["compressionType"], packed)))
    return found


def alike(own: float, pushed: float | None) -> bool:
    """Whether a pushed value is the client's own, but for what it does while it closes."""
    if math.isnan(own):
        return pushed is None  # not measured
    return pushed is not None and math.isclose(own, pushed, rel_tol=_ONE_IN, abs_tol=1.0)


async def main() -> int:
    versions = {"java": kafka_version(), "librdkafka": confluent_kafka.libversion()[0]}
    settings = {
        "emulator.client.telemetry": True,
        "emulator.records.per.second": 20.0,
        "group.initial.rebalance.delay.ms": 0,
    }
    async with running(topics={"orders": 3}, settings=settings) as coordinator:
        await subscribe(coordinator)
        address = coordinator.bootstrap_servers
        own = {"java": await java(address), "librdkafka": await asyncio.to_thread(librdkafka, address)}
        pushed = {name: await payloads(coordinator, name) for name in own}
    problems = 0
    lines = []
    for name, values in own.items():
        if not pushed[name]:
            print(f"{name}: no push")
            problems += 1
            continue
        for metric in COMPARED[name]:
            # librdkafka has no assignment any more when it pushes for the last time.
            found = [decode_metrics(each, (metric,)).values.get(metric) for each in pushed[name]]
            fits = any(alike(values[metric], each) for each in found[-2:])
            problems += not fits
            print(f"{name}: {metric}: {values[metric]:g}, pushed {found[-2:]}{'' if fits else '  DIFFERS'}")
        best = max(pushed[name][-2:], key=lambda each: decode_metrics(each, COMPARED[name]).points)
        payload = base64.b64encode(best).decode()
        lines.append({"client": name, "version": versions[name], "own": values, "payload": payload})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    GOLDEN.with_name("clients.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return problems


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
