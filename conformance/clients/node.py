"""Nodes in processes of their own, on free ports of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

START_SECONDS: Final = 120.0
DEFECTS: Final = ("kafka_request_refused", "core_failed", "Traceback")


IN_MEMORY: Final = "memory"
KINDS: Final = {
    IN_MEMORY: "in memory",
    "data": "`--data`",
    "postgres": "two nodes on PostgreSQL",
    "2.8": "`--as-kafka 2.8`",
}
"""The kinds of nodes that clients are run against, each with its title."""


@dataclass(frozen=True, slots=True)
class Node:
    """Where it listens, and what it logs. It may be several, of one cluster."""

    bootstrap_servers: str
    url: str
    logs: tuple[Path, ...]

    def defects(self) -> list[str]:
        """The lines of its log that no client should cause."""
        lines = [line for log in self.logs for line in log.read_text().splitlines()]
        return [line for line in lines if any(word in line for word in DEFECTS)]


@contextmanager
def running_kind(kind: str) -> Iterator[Node]:
    """A node of one of the kinds."""
    with ExitStack() as stack:
        if kind == "data":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clients-data-"))
            yield stack.enter_context(running("--data", folder))
        elif kind == "postgres":
            from tests.postgres import running_server  # noqa: PLC0415 - most clients need no PostgreSQL

            store = ("--store", stack.enter_context(running_server(fsync=False)).url("clients"))
            nodes = [stack.enter_context(running(*store, "-c", f"broker.id={number}")) for number in (1, 2)]
            _wait_until_shared(nodes)
            servers = ",".join(node.bootstrap_servers for node in nodes)
            yield Node(servers, nodes[0].url, tuple(log for node in nodes for log in node.logs))
        else:
            yield stack.enter_context(running(*(() if kind == IN_MEMORY else ("--as-kafka", kind))))


def _wait_until_shared(nodes: list[Node]) -> None:
    """Wait until every node knows that each of them leads its share of the partitions."""
    end = time.monotonic() + START_SECONDS
    while True:
        seen = []
        for node in nodes:
            with urlopen(f"{node.url}/cluster") as answer:
                seen.append([each["leads"] for each in json.load(answer)["nodes"]])
        if all(len(leads) == len(nodes) and max(leads) - min(leads) <= 1 for leads in seen):
            return
        if time.monotonic() > end:
            raise RuntimeError(f"the nodes do not share the partitions: {seen}")
        time.sleep(0.1)


@contextmanager
def running(*options: str) -> Iterator[Node]:
    """A node with these options of ``rejoin serve``."""
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        folder = Path(name)
        http, kafka, log = folder / "http", folder / "kafka", folder / "log"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", *options]
        command += ["--port-file", str(http), "--kafka-port-file", str(kafka)]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            end = time.monotonic() + START_SECONDS
            while not (_port(http) and _port(kafka)):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the node did not start: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield Node(f"127.0.0.1:{_port(kafka)}", f"http://127.0.0.1:{_port(http)}", (log,))
        finally:
            process.terminate()
            process.wait(60)


def _port(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""
