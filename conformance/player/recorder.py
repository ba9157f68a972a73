"""Records sets of scripts: each set on a real Kafka of its own."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from conformance.kafka.broker import Cluster, class_path
from conformance.kafka.cluster_actions import KafkaActions
from rejoin.conform.player.messages import Json
from rejoin.conform.player.script import Script, ScriptFailed, ScriptSet

GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden"


class Recorder(ABC):
    """Records one set."""

    def __init__(self, wanted: ScriptSet, jars: str) -> None:
        self._set = wanted
        self._jars = jars
        self.failed: list[str] = []
        self.group_log = ""

    async def record(self, scripts: list[Script]) -> dict[str, list[Json]]:
        """Play these scripts; returns their lines, the header first, by the group of the script."""
        wanted = self._set
        recorded: dict[str, list[Json]] = {}
        async with Cluster(self._jars, wanted.brokers, wanted.settings, features=wanted.features) as cluster:
            await self.prepare(cluster, scripts)
            slots = asyncio.Semaphore(wanted.at_once)

            async def one(script: Script) -> None:
                async with slots:
                    try:
                        recorded[script.group] = await self.play(cluster, script)
                    except (ScriptFailed, TimeoutError, OSError, LookupError, TypeError, ValueError) as problem:
                        self.failed.append(f"{wanted.name}/{script.subject}/{script.name}: {problem!r}")
                    if wanted.at_once == 1:
                        await KafkaActions(cluster).restore()

            await asyncio.gather(*(one(script) for script in scripts))
            self.group_log = cluster.group_log()
        return {script.group: recorded[script.group] for script in scripts if script.group in recorded}

    @abstractmethod
    async def prepare(self, cluster: Cluster, scripts: list[Script]) -> None:
        """Make a new cluster ready for these scripts."""

    @abstractmethod
    async def play(self, cluster: Cluster, script: Script) -> list[Json]:
        """Play one script; returns its lines, the header first."""

    @abstractmethod
    def write(self, folder: Path, recorded: dict[str, list[Json]], *, is_whole: bool) -> None:
        """Write a recording of all scripts of the set, or of some, below a folder."""


async def record_sets(
    make: Callable[[ScriptSet, str], Recorder], sets: Iterable[ScriptSet], names: list[str], only: str, folder: Path
) -> int:
    """Record sets by name, or all; ``only`` scripts whose names contain this. Returns how many scripts failed."""
    jars = await class_path()
    failed = 0
    for wanted in sets:
        whole = list(wanted.scripts())
        scripts = [script for script in whole if only in f"{script.subject}/{script.name}"]
        if (names and wanted.name not in names) or not scripts:
            continue
        started, recorder = time.monotonic(), make(wanted, jars)
        recorded = await recorder.record(scripts)
        recorder.write(folder / wanted.folder, recorded, is_whole=len(scripts) == len(whole))
        seconds = time.monotonic() - started
        print(f"{wanted.name}: {len(recorded)} of {len(scripts)} scripts recorded in {seconds:.0f} s")
        for problem in recorder.failed:
            print(f"  {problem}")
        failed += len(recorder.failed)
    return failed


def text_of(lines: Iterable[Json]) -> str:
    """One JSON object a line."""
    return "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
