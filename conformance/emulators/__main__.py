"""Plays the scripts against other emulators, and counts how many each passes: ``python -m conformance.emulators``.

They are asked like Kafka was, in the newest version that both speak unless a script says which, and what they answer is
laid beside the recording. Times are not compared, nor what is a cluster's own (``ITS_OWN`` in ``tally``). Only scripts
of the set ``plain`` are played: the others need settings or brokers that the others do not have.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import confluent_kafka

from conformance.emulators.tally import SET, Tally, play_here, recorded
from conformance.replay.replay import Recording
from conformance.steps.language import SCRIPTS, load_set
from rejoin.conform.comparison.compare import ABSENT, Difference, differences, exchanges
from rejoin.conform.player.connection import Address, ClientConnections
from rejoin.conform.player.messages import Json, NoSuchField, api_key
from rejoin.conform.player.play import Play, Target
from rejoin.conform.player.recording import events
from rejoin.conform.player.script import Script, ScriptFailed
from rejoin.conform.steps.player import NOT_SPOKEN
from rejoin.protocol.registry import BY_KEY, BY_NAME

Start: TypeAlias = Callable[[], AbstractAsyncContextManager[dict[int, Address]]]
"""Starts an emulator, and stops it afterwards."""

HERE: Final = Path(__file__).parent
AT_ONCE: Final = 12
PATIENCE_SECONDS: Final = 8.0
OFFSETS_PARTITIONS: Final = 50
PREPARING: Final = {api_key(api) for api in ("InitProducerId", "AddOffsetsToTxn", "EndTxn")}


async def play_there(start: Start, only: str) -> Tally:
    """The scripts, each on an emulator of its own: some requests bring one down."""
    golden = recorded()
    tally = Tally()
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(script: Script) -> None:
        name = f"{script.subject}/{script.name}"
        async with slots:
            try:
                async with start() as addresses:
                    target = await look(addresses)
                    lines = events(await asyncio.wait_for(Play(script, target).play(), 60))
            except Exception as problem:  # whatever it is, the script was not passed
                said = f"{type(problem).__name__}: {problem}"
                spoken = NOT_SPOKEN not in said and NoSuchField.__name__ not in said
                tally.count_unplayed(name, said, spoken=spoken)
                return
        tally.count(name, list(_beside(golden[name], lines)))

    scripts = [script for script in load_set(SCRIPTS / SET).scripts() if only in f"{script.subject}/{script.name}"]
    await asyncio.gather(*(one(script) for script in scripts))
    return tally


def _beside(recording: Recording, lines: list[Json]) -> Iterable[Difference]:
    """Differences; fields that the version spoken there does not have are left out of Kafka's answer."""
    theirs = {asked.number: asked for asked in exchanges(lines)}
    for asked in recording.exchanges:
        if asked.api not in BY_NAME or asked.number not in theirs:
            continue
        other = theirs[asked.number]
        for one in differences(asked, other.answer, times=False):
            another = other.version != asked.version
            if not another or (ABSENT not in (one.kafka, one.other) and (one.kafka or one.other)):
                yield one


async def look(addresses: dict[int, Address]) -> Target:
    """Who is there, and which versions are spoken."""
    first = next(iter(addresses))
    connections = ClientConnections(addresses, time.monotonic)

    known = await connections.ask("cluster", first, "ApiVersions", 0, {})
    versions = {one["apiKey"]: (one["minVersion"], one["maxVersion"]) for one in known["apiKeys"]}
    topics = {"orders": 4, "payments": 2}
    known = await connections.ask("cluster", first, "Metadata", 1, {"topics": [{"name": name} for name in topics]})
    connections.close()
    nodes = {one["nodeId"]: (one["host"], one["port"]) for one in known["brokers"]}
    spoken = {key: versions[key] for key in versions if key in BY_KEY or key in PREPARING}
    return Target(nodes, spoken, topics, OFFSETS_PARTITIONS, lenient=True, patience=PATIENCE_SECONDS)


def served_by(*command: str) -> Start:
    """A program that prints its address and serves until its standard input ends."""

    @asynccontextmanager
    async def start() -> AsyncIterator[dict[int, Address]]:
        server = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            host, _, port = (await server.stdout.readline()).decode().strip().rpartition(":")
            yield {0: (host, int(port))}
        finally:
            server.stdin.close()
            await server.wait()

    return start


async def build_kfake(folder: str) -> Start:
    """franz-go's fake, in the small program beside this one; Go fetches and builds it in a temporary folder."""
    for path in (HERE / "kfake").iterdir():
        shutil.copy(path, folder)
    build = await asyncio.create_subprocess_exec("go", "build", "-o", "server", ".", cwd=folder)
    if await build.wait() != 0:
        raise ScriptFailed("kfake could not be built")
    return served_by(os.path.join(folder, "server"))


def kfake_version() -> str:
    """The commit that ``go.mod`` names, and its date: kfake has no releases."""
    lines = (HERE / "kfake" / "go.mod").read_text().splitlines()
    _, time_of_commit, commit = next(line for line in lines if "/pkg/kfake " in line).rsplit("-", 2)
    return f"{commit[:7]} of {time_of_commit[:4]}-{time_of_commit[4:6]}-{time_of_commit[6:8]}"


def own_version() -> str:
    """The version in ``pyproject.toml``: the emulator is not installed where this runs."""
    version: str = tomllib.loads((HERE.parent.parent / "pyproject.toml").read_text())["project"]["version"]
    return version


def names_with_versions() -> tuple[str, str, str, str]:
    """Kafka, this emulator, and the others."""
    (kafka,) = {recording.kafka for recording in recorded().values()}
    return (
        f"Apache Kafka {kafka}",
        f"Rejoin {own_version()}",
        f"kfake (franz-go) {kfake_version()}",
        f"mock cluster (librdkafka) {confluent_kafka.libversion()[0]}",
    )


def table(tallies: dict[str, Tally]) -> str:
    """The tallies as Markdown, and when they were counted."""
    rows = ["| | scripts | of these not spoken | same errors | same in every field |", "|---|---|---|---|---|"]
    for name, tally in tallies.items():
        rows.append(f"| {name} | {tally.played} | {tally.not_spoken} | {tally.same_errors} | {tally.same} |")
    return "\n".join([f"Measured on {datetime.now(UTC):%Y-%m-%d}.", "", *rows])


async def run(only: str, verbose: bool) -> None:
    """Play everything everywhere and print the table."""
    count = len(recorded())
    kafka, ours, kfake, mock_cluster = names_with_versions()
    tallies = {kafka: Tally(count, 0, count, count), ours: play_here()}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        others = {
            kfake: await build_kfake(folder),
            mock_cluster: served_by(sys.executable, "-m", "conformance.emulators.mock_cluster"),
        }
        for name, start in others.items():
            tallies[name] = await play_there(start, only)
    print(table(tallies))
    if verbose:
        for name, tally in tallies.items():
            for script, problem in sorted(tally.failed.items()):
                print(f"{name}: {script}: {problem[:300]}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Play the scripts against other emulators.")
    parser.add_argument("--only", default="", help="only scripts whose subject and name contain this")
    parser.add_argument("--verbose", action="store_true", help="print the first difference of each script")
    given = parser.parse_args()
    asyncio.run(run(given.only, given.verbose))


if __name__ == "__main__":
    main()
