"""The brokers that are judged: each starts with the settings of some recordings, and stops afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import confluent_kafka

from conformance.kafka.broker import Cluster, kafka_version
from rejoin.conform.player.connection import Address
from rejoin.conform.player.script import ScriptFailed
from rejoin.coordinator.config import Settings

HERE: Final = Path(__file__).parent
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
TANSU: Final = "0.6.0"
CONSUMER_GROUPS: Final = frozenset({"group.consumer.assignment.interval.ms", "group.consumer.migration.policy"})
"""Settings of recordings of consumer groups."""


@dataclass(frozen=True)
class Profile:
    """Settings and levels of features with which recordings were made."""

    settings: Mapping[str, str]
    features: Mapping[str, int]


class Start(Protocol):
    """Starts a broker with a profile, and stops it on exit."""

    def __call__(self, profile: Profile) -> AbstractAsyncContextManager[Address]: ...


@dataclass(frozen=True)
class Candidate:
    """A broker to judge. Without ``has_settings`` one run plays all scripts."""

    name: str
    start: Start
    has_settings: bool = True


def kafka(jars: str, release: str = "") -> Candidate:
    """Apache Kafka itself, in the release of the jars."""
    release = release or kafka_version()

    @asynccontextmanager
    async def start(profile: Profile) -> AsyncIterator[Address]:
        settings, features = profile.settings, profile.features
        if release.startswith("3."):
            features = {}  # Its transactions have one level, and its consumer groups are switched on by a setting.
            if CONSUMER_GROUPS & settings.keys():
                settings = {**settings, "group.coordinator.rebalance.protocols": "classic,consumer"}
        async with Cluster(jars, 1, settings, features=features) as cluster:
            yield cluster.addresses[1]

    return Candidate(f"Apache Kafka {release}", start)


def rejoin() -> Candidate:
    """``rejoin serve``, from this clone."""
    known = {name.replace("_", ".") for name in Settings.model_fields}
    project = tomllib.loads((HERE.parent.parent / "pyproject.toml").read_text())["project"]

    @asynccontextmanager
    async def start(profile: Profile) -> AsyncIterator[Address]:
        settings = {name: value for name, value in profile.settings.items() if name in known}
        if "transaction.version" in profile.features:
            settings["emulator.transaction.version"] = str(profile.features["transaction.version"])
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            port_file = Path(folder) / "port"
            given = (part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
            ports = ("--port", "0", "--kafka-port", "0", "--kafka-port-file", str(port_file))
            command = (sys.executable, "-m", "rejoin", "serve", *ports, "--log-level", "critical", *given)
            server = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
            )
            try:
                async with asyncio.timeout(START_SECONDS):
                    while not (port_file.exists() and port_file.read_text().strip()):
                        if server.returncode is not None:
                            assert server.stderr is not None
                            raise ScriptFailed((await server.stderr.read()).decode())
                        await asyncio.sleep(0.05)
                yield "127.0.0.1", int(port_file.read_text())
            finally:
                await _end(server)

    return Candidate(f"Rejoin {project['version']}", start)


async def kfake(folder: str) -> Candidate:
    """franz-go's fake, in the small program beside this file; Go fetches and builds it in ``folder``."""
    for path in (HERE / "kfake").iterdir():
        shutil.copy(path, folder)
    build = await asyncio.create_subprocess_exec("go", "build", "-o", "server", ".", cwd=folder)
    if await build.wait() != 0:
        raise ScriptFailed("kfake could not be built")
    return Candidate(f"kfake (franz-go) {_kfake_version()}", _served_by(os.path.join(folder, "server")), False)


async def tansu(folder: str) -> Candidate:
    """Tansu, a broker in Rust, with its store in memory: ``tansu`` on the path, or built by Cargo, which takes long."""
    program = shutil.which("tansu")
    if program is None:
        options = ("--version", TANSU, "--features", "dynostore", "--root", folder)
        build = await asyncio.create_subprocess_exec("cargo", "install", "tansu", *options)
        if await build.wait() != 0:
            raise ScriptFailed("tansu could not be built")
        program = os.path.join(folder, "bin", "tansu")

    @asynccontextmanager
    async def start(profile: Profile) -> AsyncIterator[Address]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = f"tcp://127.0.0.1:{port}"
        server = await asyncio.create_subprocess_exec(
            program,
            *("broker", "--silent", "--listener-url", url, "--advertised-listener-url", url),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _until_open(port)
            yield "127.0.0.1", port
        finally:
            await _end(server)

    return Candidate(f"Tansu {TANSU}", start, False)


async def _until_open(port: int) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def mock_cluster() -> Candidate:
    """librdkafka's mock cluster."""
    name = f"mock cluster (librdkafka) {confluent_kafka.libversion()[0]}"
    return Candidate(name, _served_by(sys.executable, "-m", "conformance.judged.mock_cluster"), False)


def _kfake_version() -> str:
    """The commit that ``go.mod`` names, and its date: kfake has no releases."""
    lines = (HERE / "kfake" / "go.mod").read_text().splitlines()
    _, time_of_commit, commit = next(line for line in lines if "/pkg/kfake " in line).rsplit("-", 2)
    return f"{commit[:7]} of {time_of_commit[:4]}-{time_of_commit[4:6]}-{time_of_commit[6:8]}"


def _served_by(*command: str) -> Start:
    """A program that prints its address and serves until its standard input ends."""

    @asynccontextmanager
    async def start(profile: Profile) -> AsyncIterator[Address]:
        server = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            host, _colon, port = (await server.stdout.readline()).decode().strip().rpartition(":")
            yield host, int(port)
        finally:
            server.stdin.close()
            await _end(server, is_asked=True)

    return start


async def _end(server: asyncio.subprocess.Process, *, is_asked: bool = False) -> None:
    if server.returncode is not None:
        return
    if not is_asked:
        server.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await server.wait()
    except TimeoutError:
        server.kill()
        await server.wait()
