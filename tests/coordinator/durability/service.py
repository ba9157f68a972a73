"""A coordinator in a process of its own that is killed and started again, and those who commit to it meanwhile."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.coordinator.ports import free_port

PATIENCE: Final = 180.0
RETRIABLE: Final = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


class Service:
    """``rejoin serve`` with a store, always on the same ports."""

    def __init__(self, folder: Path, store: list[str], settings: dict[str, str], topic: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.kafka_port = free_port()
        self._command = [sys.executable, "-m", "rejoin", "serve", "--port", str(self.port), *store]
        self._command += ["--kafka-port", str(self.kafka_port)]
        self._command += ["--journal", str(folder / "journal"), "--topic", topic, "--log-level", "error"]
        for name, value in settings.items():
            self._command += ["-c", f"{name}={value}"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = self.spawn("coordinator", self._command)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the coordinator did not start:\n{self.said('coordinator')}")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return
            time.sleep(0.02)
        raise AssertionError("the coordinator does not listen")

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3_000:]

    def consume(self, name: str, group: str, topic: str, consumers: int = 2) -> subprocess.Popen[bytes]:
        """A process of consumers that commit after each poll."""
        command = [sys.executable, "-m", "rejoin", "consume", "--bootstrap-server", f"http://127.0.0.1:{self.port}"]
        command += ["--group", group, "--topic", topic, "-n", str(consumers), "--commit", "sync", "--client-id", name]
        command += ["--session-timeout-ms", "30000", "--heartbeat-interval-ms", "300", "--log-level", "error"]
        command += ["-c", "retry.backoff.max.ms=300", "--journal", str(self.folder / "journal")]
        return self.spawn(name, command)

    def look(self, path: str) -> dict[str, Any] | None:
        """What it shows, or none where it does not answer."""
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
                return json.loads(body) if answer.status == 200 else None
            finally:
                connection.close()
        return None


class Committer(threading.Thread):
    """Commits 1, 2, 3, … for a group of its own, and looks after each interruption whether anything was lost.

    What was acknowledged must be there. All else may be.
    """

    def __init__(self, port: int, number: int, topic: str) -> None:
        super().__init__(name=f"committer-{number}", daemon=True)
        self.group = f"solo-{number}"
        self.acknowledged = 0
        self.looked = 0
        self.problem: str | None = None
        self._port = port
        self._topic = topic
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.is_set() and self.problem is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            with suppress(OSError, http.client.HTTPException):
                self._look(connection)
                while not self._stopped.is_set() and self.problem is None:
                    self._commit(connection)
            connection.close()
            time.sleep(0.02)

    def _ask(self, connection: http.client.HTTPConnection, path: str, version: int, body: object) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Kafka-Api-Version": str(version)}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200:
            if answer.status != 503:
                self.problem = f"{path}: {found}"
            raise ConnectionError
        return found

    def _look(self, connection: http.client.HTTPConnection) -> None:
        """What is stored: all that was acknowledged, and at most the one commit that was not answered."""
        wanted = {"topics": [{"name": self._topic, "partitionIndexes": [0]}], "groupId": self.group}
        while True:
            answer = self._ask(connection, "/v1/offset-fetch", 7, {**wanted, "requireStable": True})
            if answer["errorCode"] in RETRIABLE:
                time.sleep(0.02)
                continue
            partition = answer["topics"][0]["partitions"][0]
            if answer["errorCode"] or partition["errorCode"]:
                self.problem = f"{self.group}: {answer}"
                return
            stored = max(0, partition["committedOffset"])
            if not self.acknowledged <= stored <= self.acknowledged + 1:
                self.problem = f"{self.group}: {self.acknowledged} was acknowledged, {stored} is stored"
            self.acknowledged = stored
            self.looked += 1
            return

    def _commit(self, connection: http.client.HTTPConnection) -> None:
        number = self.acknowledged + 1
        partition = {"partitionIndex": 0, "committedOffset": number, "committedMetadata": ""}
        topics = [{"name": self._topic, "partitions": [partition]}]
        body = {"groupId": self.group, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": topics}
        answer = self._ask(connection, "/v1/offset-commit", 8, body)
        error = answer["topics"][0]["partitions"][0]["errorCode"]
        if error in RETRIABLE:
            # Not answered with success, so it may or may not be there.
            time.sleep(0.01)
            self._look(connection)
        elif error:
            self.problem = f"{self.group}: {answer}"
        else:
            self.acknowledged = number


def stop_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM, then SIGKILL for who does not listen."""
    for process in processes:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
