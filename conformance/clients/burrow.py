"""Burrow, the lag monitor, beside a node: ``BURROW=PATH python -m conformance.clients Burrow``.

It reads ``__consumer_offsets`` as bytes, knows the group's members from it, and evaluates the lag.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from confluent_kafka import Consumer, Producer

from tests.coordinator.ports import free_port

NAME: Final = "Burrow"
VERSION: Final = "1.9.5"
STEP: Final = "lag, offset and client of a group"
TOPIC, GROUP, CLIENT = "burrow-orders", "burrow-readers", "burrow-reader"
RECORDS, READ = 10, 7
PATIENCE_SECONDS: Final = 60.0


def run_steps(bootstrap_servers: str) -> list[tuple[str, str]]:
    """The one step and its problem, which is empty where it passed. The program is at the path in ``BURROW``."""
    program = Path(os.environ.get("BURROW", "burrow")).resolve()
    if not program.is_file():
        raise SystemExit(f"BURROW={program} is no file: expected the program, built from github.com/linkedin/Burrow")
    with _committed(bootstrap_servers):
        return [(STEP, _problem(program, bootstrap_servers))]


@contextmanager
def _committed(servers: str) -> Iterator[None]:
    """A group whose one member has read some of the records, and goes on."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number), partition=0)
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "client.id": CLIENT,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        end, read = time.monotonic() + PATIENCE_SECONDS, 0
        while read < READ and time.monotonic() < end:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                read += 1
                consumer.commit(message=message, asynchronous=False)
        yield
    finally:
        consumer.close()


def _problem(burrow: Path, servers: str) -> str:
    """Facts about the group that Burrow lacks in the end; empty if it has all."""
    wanted = {"topic": TOPIC, "partition": 0, "client_id": CLIENT, "offset": READ, "lag": RECORDS - READ}
    with tempfile.TemporaryDirectory(prefix="burrow-") as name:
        folder, port = Path(name), free_port()
        listed = ", ".join(f'"{server}"' for server in servers.split(","))
        (folder / "burrow.toml").write_text(SETTINGS.format(folder=folder, servers=listed, port=port))
        with (folder / "console").open("wb") as console:
            process = subprocess.Popen([burrow, "--config-dir", folder], stdout=console, stderr=console)
        try:
            end = time.monotonic() + PATIENCE_SECONDS
            seen: dict[str, Any] = {}
            while seen != wanted and time.monotonic() < end and process.poll() is None:
                time.sleep(0.5)
                seen = _seen(port)
        finally:
            process.terminate()
            process.wait(10)
        return "" if seen == wanted else f"expected {wanted}, got {seen}: {(folder / 'console').read_text()[-300:]}"


def _seen(port: int) -> dict[str, Any]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/v3/kafka/node/consumer/{GROUP}/lag") as answer:
            partitions = json.load(answer)["status"]["partitions"]
    except (URLError, ConnectionError):
        return {}
    if not partitions:
        return {}
    (found,) = partitions
    own = {name: found[name] for name in ("topic", "partition", "client_id")}
    return own | {"offset": found["end"]["offset"], "lag": found["current_lag"]}


SETTINGS: Final = """
[general]
pidfile="{folder}/pid"
[logging]
filename="{folder}/log"
[cluster.node]
class-name="kafka"
servers=[{servers}]
topic-refresh=5
offset-refresh=1
[consumer.node]
class-name="kafka"
cluster="node"
servers=[{servers}]
backfill-earliest=true
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
min-distance=1
"""
