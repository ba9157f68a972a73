"""The processes of the demo: one coordinator, and consumers that can be started, killed and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

START_SECONDS = 20.0
STOP_SECONDS = 5.0


class StageFailed(Exception):
    """A process did not do what the demo needs; the text says which, and what it printed."""


@dataclass
class StagedConsumer:
    """One consumer process with one consumer in it; its name is its client id."""

    name: str
    group_id: str
    assignor: str
    process: subprocess.Popen[bytes]

    def crash(self) -> None:
        """kill -9: the process sends nothing any more."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Stage:
    """A coordinator on a free port and the consumers around it, all of them children of this process."""

    def __init__(
        self, folder: Path, topic: str, partitions: int, settings: dict[str, str], journal: Path | None = None
    ) -> None:
        self.folder = folder
        self.journal = journal or folder / "journal"
        self.topic = topic
        self.consumers: list[StagedConsumer] = []
        port_file = folder / "port"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--port-file", str(port_file)]
        command += ["--journal", str(self.journal), "--topic", f"{topic}:{partitions}:20", "--log-level", "error"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self.coordinator = self._spawn("coordinator", command)
        self.port = self._wait_for_port(port_file)

    def _spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            # Its own session, so that Ctrl-C reaches the demo alone, which then stops everything in order.
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _wait_for_port(self, port_file: Path) -> int:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if port_file.exists():
                return int(port_file.read_text())
            if self.coordinator.poll() is not None:
                break
            time.sleep(0.02)
        raise StageFailed(f"the coordinator did not start:\n{(self.folder / 'coordinator.log').read_text()}")

    def consume(
        self,
        prefix: str,
        group_id: str,
        assignor: str,
        *,
        session_timeout_ms: int,
        number: int = 1,
        static: bool = False,
        revoke_time: str = "0",
        assign_time: str = "0",
    ) -> StagedConsumer:
        """Start a consumer process; its listener takes these times for each partition that it gives up or gets."""
        command = [sys.executable, "-m", "rejoin", "consume", "--bootstrap-server", f"http://127.0.0.1:{self.port}"]
        command += ["--group", group_id, "--topic", self.topic, "--assignor", assignor]
        command += ["--client-id", prefix, "--first", str(number)]
        command += ["--session-timeout-ms", str(session_timeout_ms), "--heartbeat-interval-ms", "500"]
        command += ["--revoke-time", revoke_time, "--assign-time", assign_time, "--journal", str(self.journal)]
        if static:
            command += ["--static"]
        name = f"{prefix}-{number}"
        consumer = StagedConsumer(name, group_id, assignor, self._spawn(name, command))
        self.consumers.append(consumer)
        return consumer

    def look(self, path: str) -> Any:
        """The coordinator's answer to a GET of a path."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return json.load(answer)

    def rows(self, after: int) -> tuple[list[dict[str, Any]], int]:
        """The events behind a row, and where to go on."""
        answer = self.look(f"/events?after={after}&limit=1000")
        return answer["events"], answer["next"]

    def group(self, group_id: str) -> dict[str, Any] | None:
        """A group as it stands, or none yet."""
        try:
            view: dict[str, Any] = self.look(f"/groups/{quote(group_id, safe='')}")
        except urllib.error.HTTPError as problem:
            if problem.code == 404:
                return None
            raise
        return view

    def check(self) -> None:
        """Raise :class:`StageFailed` when a process that should run has ended."""
        for name, process in [
            ("coordinator", self.coordinator),
            *((consumer.name, consumer.process) for consumer in self.consumers),
        ]:
            code = process.poll()
            if code is not None and code != -signal.SIGKILL:
                raise StageFailed(f"{name} ended with {code}:\n{(self.folder / f'{name}.log').read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop everything that was started here, the coordinator last."""
        consumers = [consumer.process for consumer in self.consumers]
        for process in consumers:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        _wait(consumers)
        with suppress(ProcessLookupError):
            os.kill(self.coordinator.pid, signal.SIGTERM)
        _wait([self.coordinator])


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
