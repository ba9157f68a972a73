"""How long a test waits for its coordinator, and for the time that it lets pass.

From nothing to the first answered request: on the event loop of the test, without and with a socket, in a thread of its
own, and as a process, of which Kafka clients are answered before the HTTP side is loaded. Then a test of 45 seconds of
session, five minutes of ``max.poll.interval.ms`` and seven days of offset retention, in virtual time. Then processor
time of each command's ``--help``, and at last that of ``rejoin serve`` until it listens, beside that of importing its
libraries: on any machine, the ratio says what is ours.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, Final, cast

from rich.table import Table

from benchmarks import printer
from rejoin.commands import COMMANDS
from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator, running, running_in_thread
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.registry import API_VERSIONS

ROUNDS: Final = 30
PROCESSES: Final = 5
HELP_ROUNDS: Final = 3
WARM_UP: Final = 1
"""Rounds that are not counted, before those that are: the first compiles modules."""
COMPARED: Final = 12
COMPILES: Final = True
"""Modules are compiled for the measured processes alone, and not taken from where they were compiled before."""
PATIENCE_S: Final = 300
WANTED_MS: Final = {"in process": 20.0, "process": 500.0, "kafka": 300.0, "time": 200.0}
WANTED_RATIO: Final = 1.6
AT_MOST: Final = 2.0
"""A ratio above it fails: 1.5 to 1.8 were measured, quiet and beside load."""

HELP: Final = tuple(COMMANDS)
"""The commands whose ``--help`` is timed."""

_LIBRARIES: Final = "import aiohttp.web, pydantic"
_FRAME: Final = struct.pack(">ihhih", 10, API_VERSIONS.key, 0, 1, -1)
_WEEK_MS: Final = 7 * 86_400_000
_ASK: Final = ApiVersionsRequest(client_software_name="benchmark", client_software_version="1")


def _get(port: int, path: str = "/healthz") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


async def _without_socket() -> float:
    began = perf_counter()
    async with running(socket=False) as coordinator:
        await coordinator.call(_ASK)
        return perf_counter() - began


async def _with_socket() -> float:
    began = perf_counter()
    async with running() as coordinator:
        reader, writer = await asyncio.open_connection("127.0.0.1", coordinator.app.port)
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b"ok" in await reader.read()
        took = perf_counter() - began
        writer.close()
        return took


def _in_thread() -> float:
    began = perf_counter()
    with running_in_thread() as behind:
        assert b"ok" in _get(BlockingGroupCoordinator(behind).behind.app.port)
        return perf_counter() - began


def _as_process(*arguments: str) -> float:
    with tempfile.TemporaryDirectory() as directory:
        port_file = Path(directory) / "port"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--port-file", str(port_file)]
        began = perf_counter()
        process = subprocess.Popen([*command, "--log-level", "critical", *arguments])
        try:
            while not port_file.exists():
                sleep(0.001)
            assert b"200 OK" in _get(int(port_file.read_text()))
            return perf_counter() - began
        finally:
            process.terminate()
            process.wait()


def _until_kafka_answers(*arguments: str) -> float:
    """Until a process answers ApiVersions version 0, to a client that tries to connect every ms."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--kafka-port", str(port)]
    began = perf_counter()
    process = subprocess.Popen([*command, "--log-level", "critical", *arguments])
    try:
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
                break
            except ConnectionRefusedError:
                assert process.poll() is None, "it listens before it ends"
                sleep(0.001)
        with connection:
            connection.sendall(_FRAME)
            assert connection.recv(4)
        return perf_counter() - began
    finally:
        process.terminate()
        process.wait()


async def _join(coordinator: GroupCoordinator, group: str, member_id: str = "", **timeouts: int) -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=timeouts.get("session", 45_000),
        rebalance_timeout_ms=timeouts.get("rebalance", 300_000),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        reason=None,
    )
    return asyncio.ensure_future(coordinator.call(request))


async def _stable(coordinator: GroupCoordinator, group: str, **timeouts: Any) -> str:
    member_id = cast(JoinGroupResponse, await (await _join(coordinator, group, **timeouts))).member_id
    joining = await _join(coordinator, group, member_id, **timeouts)
    await asyncio.sleep(0)
    await coordinator.advance(3_000)
    answer = cast(JoinGroupResponse, await joining)
    assignment = (SyncGroupRequestAssignment(member_id=member_id, assignment=b""),)
    await coordinator.call(
        SyncGroupRequest(
            group_id=group,
            generation_id=answer.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignment,
        )
    )
    return member_id


async def _time() -> float:
    """The session, the poll and the retention, each to its very end."""
    began = perf_counter()
    async with running(clock="virtual", topics={"orders": 1}, socket=False) as coordinator:
        await _stable(coordinator, "crashed")
        fired = (await coordinator.advance(45_000)).fired
        assert [each.timer for each in fired] == ["session"]
        await _stable(coordinator, "slow", session=1_800_000)
        newcomer = cast(JoinGroupResponse, await (await _join(coordinator, "slow"))).member_id
        joining = await _join(coordinator, "slow", newcomer)
        await asyncio.sleep(0)
        await coordinator.advance(299_999)
        assert not joining.done()
        await coordinator.advance(1)
        await joining
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
        topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        await coordinator.call(OffsetCommitRequest(group_id="batch", member_id="", topics=(topic,)))
        await coordinator.advance(_WEEK_MS + 600_000)
        assert await coordinator.group("batch") is None
    return perf_counter() - began


def modules_when_listening(directory: Path) -> set[str]:
    """The modules that ``rejoin serve`` has loaded at the moment in which it listens."""
    code = f"""
import sys
def look(event, given):
    if event == "os.rename" and str(given[1]) == {str(directory / "port")!r}:
        print(*sys.modules, sep="\\n", flush=True)
        os._exit(0)
import os
from rejoin.__main__ import main
sys.addaudithook(look)
main(["serve", "--port", "0", "--log-level", "critical", "--port-file", {str(directory / "port")!r}])
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S)
    return set(ended.stdout.splitlines())


def _processor_times(directory: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Of ``rejoin serve`` until it listens, and of importing its libraries, one after the other."""
    code = f"""
import os, sys
sys.addaudithook(lambda event, given: event == "os.rename" and str(given[1]).endswith("port") and os._exit(0))
from rejoin.__main__ import main
main(["serve", "--port", "0", "--log-level", "critical", "--port-file", {str(directory / "port")!r}])
"""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(WARM_UP + rounds):
        for which, what in enumerate((code, _LIBRARIES)):
            times[which].append(_processor_time(directory, "-c", what))
    return times[0][WARM_UP:], times[1][WARM_UP:]


def _help_times(directory: Path, rounds: int) -> dict[str, float]:
    """The processor time in ms of each command's ``--help``, the best of some rounds."""
    found = {}
    for name in HELP:
        took = [_processor_time(directory, "-m", "rejoin", name, "--help") for _ in range(WARM_UP + rounds)]
        found[name] = min(took[WARM_UP:]) * 1_000
    return found


def _processor_time(directory: Path, *arguments: str) -> float:
    """What a run of Python needs, in s. As installed, where every module is compiled: the first run does that."""
    environment = {**os.environ}
    if COMPILES:
        environment["PYTHONPYCACHEPREFIX"] = str(directory / "compiled")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _rounds(one: Callable[[], float], rounds: int) -> list[float]:
    return [one() * 1_000 for _ in range(WARM_UP + rounds)][WARM_UP:]


def main() -> int:
    """Measure and print; 1 if ``rejoin serve`` needs more than :data:`AT_MOST` times the imports of its libraries."""
    rows: list[tuple[str, list[float], float]] = [
        (
            "on the test's loop, no socket",
            _rounds(lambda: asyncio.run(_without_socket()), ROUNDS),
            WANTED_MS["in process"],
        ),
        ("on the test's loop, HTTP", _rounds(lambda: asyncio.run(_with_socket()), ROUNDS), WANTED_MS["in process"]),
        ("in a thread of its own, HTTP", _rounds(_in_thread, ROUNDS), WANTED_MS["in process"]),
        ("rejoin serve, until ApiVersions", _rounds(_until_kafka_answers, PROCESSES), WANTED_MS["kafka"]),
        (
            "rejoin serve --control, until ApiVersions",
            _rounds(lambda: _until_kafka_answers("--control"), PROCESSES),
            WANTED_MS["kafka"],
        ),
        ("rejoin serve, until HTTP", _rounds(_as_process, PROCESSES), WANTED_MS["process"]),
        (
            "rejoin serve --control, until HTTP",
            _rounds(lambda: _as_process("--control"), PROCESSES),
            WANTED_MS["process"],
        ),
        ("45 s + 5 min + 7 days of virtual time", _rounds(lambda: asyncio.run(_time()), 5), WANTED_MS["time"]),
    ]
    table = Table(title="From nothing to the first answered request, and time that passes in no time")
    for column in ("what", "median ms", "least ms", "wanted"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, took, wanted in rows:
        table.add_row(what, f"{median(took):.1f}", f"{min(took):.1f}", f"< {wanted:.0f}")
    printer().print(table)
    with tempfile.TemporaryDirectory() as directory:
        helps = Table(title="processor time of --help")
        helps.add_column("command")
        helps.add_column("ms", justify="right")
        for name, took_ms in _help_times(Path(directory), HELP_ROUNDS).items():
            helps.add_row(name, f"{took_ms:.0f}")
        printer().print(helps)
        print(f"modules of rejoin serve when it listens: {len(modules_when_listening(Path(directory)))}")
        serve, libraries = _processor_times(Path(directory), COMPARED)
    ratio = median(serve) / median(libraries)
    print(
        f"processor time until rejoin serve listens: {median(serve):.2f} s; of {_LIBRARIES!r}: "
        f"{median(libraries):.2f} s; ratio {ratio:.2f}, wanted < {WANTED_RATIO:.2f}, at most {AT_MOST:.2f}: "
        f"{'met' if ratio < WANTED_RATIO else 'kept' if ratio <= AT_MOST else 'missed'}"
    )
    return 0 if ratio <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
