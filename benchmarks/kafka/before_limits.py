"""Heartbeat and Produce over a socket, beside the last commit without ACLs and quotas: CPU of the broker.

``python -m benchmarks.kafka.before_limits``. That commit is checked out into a temporary folder. Both brokers run at
one time with no ACL and no quota, and short rounds take turns. CPU time is that of the broker's process as the kernel
counts it; of all rounds the quickest quarter ends at what is compared, as a busy machine makes the others slower.
"""

from __future__ import annotations

import base64
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import environ
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.conform.player.messages import request_frame, response
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record

BEFORE: Final = "59216da0^"
"""The commit before ACLs came in. Quotas came later."""
ROUNDS = 600
REQUESTS = 20
WARM_UP = 50
"""Rounds that are not counted."""
AT_MOST: float = 1.03
"""Ratio of the CPU time to that of the commit before."""
START_SECONDS: Final = 120.0
ANSWER_SECONDS: Final = 60.0
_ROOT: Final = Path(__file__).parents[2]
_ORDERS: Final = ((0, 1), (1, 0))
_TOPIC: Final = "t"
_GROUP: Final = "g"
_CORRELATION_AT: Final = 8


class _Broker:
    """A broker in a process of its own, and one connection to it."""

    def __init__(self, tree: Path, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        port_file, log = folder / "port", folder / "log"
        command = (sys.executable, "-m", "rejoin", "serve", "--port", "0", "--topic", f"{_TOPIC}:1")
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                (*command, "--kafka-port-file", str(port_file)),
                cwd=tree,
                env=environ | {"PYTHONPATH": f"{tree / 'src'}:{tree}"},
                stdout=out,
                stderr=out,
            )
        stack.callback(self._process.wait, START_SECONDS)
        stack.callback(self._process.terminate)
        end = time.monotonic() + START_SECONDS
        while not (port_file.exists() and port_file.read_text().strip()):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the broker did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        address = ("127.0.0.1", int(port_file.read_text()))
        self._socket = stack.enter_context(socket.create_connection(address, ANSWER_SECONDS))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, frame: bytes) -> bytes:
        """The answer to a frame, both with their lengths."""
        self._socket.sendall(frame)
        answer = self._socket.recv(65_536)
        while len(answer) < 4 or len(answer) - 4 < int.from_bytes(answer[:4], "big"):
            more = self._socket.recv(65_536)
            if not more:
                raise RuntimeError("the broker closed the connection")
            answer += more
        return answer

    def ask(self, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """The body of an answer."""
        return response(api, version, self.exchange(_frame(api, version, body))[4:])

    def cpu_seconds(self) -> float:
        """CPU time of the process so far."""
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    def micros(self, frame: bytes) -> float:
        """CPU microseconds of a request, which is sent over and over with other correlation ids."""
        began = self.cpu_seconds()
        for number in range(REQUESTS):
            self.exchange(frame[:_CORRELATION_AT] + struct.pack(">i", number) + frame[_CORRELATION_AT + 4 :])
        return (self.cpu_seconds() - began) / REQUESTS * 1e6


def _frame(api: str, version: int, body: dict[str, Any]) -> bytes:
    frame = request_frame(api, version, 0, "benchmark", body)
    return struct.pack(">i", len(frame)) + frame


def _heartbeat(broker: _Broker) -> bytes:
    """A member of a group that stays, and its heartbeat."""
    member: dict[str, Any] = {"groupId": _GROUP, "memberId": ""}
    protocols = [{"name": "range", "metadata": ""}]
    asked = {"sessionTimeoutMs": 300_000, "protocolType": "consumer", "protocols": protocols}
    joined = broker.ask("JoinGroup", 0, member | asked)
    member = {"groupId": _GROUP, "generationId": joined["generationId"], "memberId": joined["memberId"]}
    synced = broker.ask("SyncGroup", 0, member | {"assignments": []})
    assert (joined["errorCode"], synced["errorCode"]) == (0, 0)
    return _frame("Heartbeat", 4, member | {"groupInstanceId": None})


def _produce() -> bytes:
    """A Produce of one record."""
    now = time.time_ns() // 1_000_000
    builder = BatchBuilder(now)
    builder.append(encode_record(0, 0, b"key", b"x" * 100), now)
    data = bytes(builder.seal(CompressionType.NONE))
    partition = {"index": 0, "records": base64.b64encode(data).decode()}
    topic = {"name": _TOPIC, "partitionData": [partition]}
    return _frame("Produce", 9, {"transactionalId": None, "acks": 1, "timeoutMs": 1_000, "topicData": [topic]})


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit in a folder."""
    with tempfile.TemporaryDirectory(prefix="benchmark-tree-") as folder:
        archive = subprocess.run(("git", "archive", commit), cwd=_ROOT, capture_output=True, check=True, timeout=60)
        subprocess.run(("tar", "-x", "-C", folder), input=archive.stdout, check=True, timeout=60)
        yield Path(folder)


def main() -> int:
    """Print microseconds a request, and fail where the ratio is too large."""
    table = Table(title=f"A request over a socket: CPU of the broker, first quartile of {ROUNDS} rounds of {REQUESTS}")
    for column in ("request", "before (µs)", "now (µs)", "ratio", "median of ratios"):
        table.add_column(column, justify="right")
    failed = False
    with ExitStack() as stack:
        brokers = [_Broker(stack.enter_context(_checked_out(BEFORE)), stack), _Broker(_ROOT, stack)]
        frames = {"Heartbeat": [_heartbeat(each) for each in brokers], "Produce": [_produce()] * 2}
        for name, of_each in frames.items():
            rounds: list[tuple[float, float]] = []
            for number in range(ROUNDS + WARM_UP):
                found = {which: brokers[which].micros(of_each[which]) for which in _ORDERS[number % 2]}
                rounds.append((found[0], found[1]))
            del rounds[:WARM_UP]
            before, now = (statistics.quantiles(column, n=4)[0] for column in zip(*rounds, strict=True))
            middle = statistics.median(after / first for first, after in rounds)
            failed |= now > AT_MOST * before
            table.add_row(name, f"{before:.1f}", f"{now:.1f}", f"{now / before:.3f}", f"{middle:.3f}")
    printer().print(table)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
