"""A node in a process of its own, on free ports of this machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

START_SECONDS: Final = 30.0
DEFECTS: Final = ("kafka_request_refused", "core_failed", "Traceback")


@dataclass(frozen=True, slots=True)
class Node:
    """Where it listens, and what it logs."""

    bootstrap_servers: str
    url: str
    log: Path

    def defects(self) -> list[str]:
        """The lines of its log that no client should cause."""
        return [line for line in self.log.read_text().splitlines() if any(word in line for word in DEFECTS)]


@contextmanager
def running(*options: str) -> Iterator[Node]:
    """A node with these options of ``rejoin serve``."""
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        folder = Path(name)
        http, kafka, log = folder / "http", folder / "kafka", folder / "log"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--kafka-port", "0", *options]
        command += ["--port-file", str(http), "--kafka-port-file", str(kafka)]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            end = time.monotonic() + START_SECONDS
            while not (_port(http) and _port(kafka)):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the node did not start: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield Node(f"127.0.0.1:{_port(kafka)}", f"http://127.0.0.1:{_port(http)}", log)
        finally:
            process.terminate()
            process.wait(10)


def _port(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""
