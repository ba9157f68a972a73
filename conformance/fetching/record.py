"""Records how three brokers in two racks answer Fetches: ``python -m conformance.fetching.record``."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

from conformance.fetching.script import RACKS, SELECTOR, Reader, play, play_without_follower
from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.record import ready
from rejoin.conform.player.connection import ClientConnections

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "follower-reads.jsonl"
_SETTLES_SECONDS: Final = 3.0
"""Followers copy, and hear of high watermarks and of brokers that are gone."""


class _RackedCluster(Cluster):
    """Three brokers, each in its rack."""

    def _write_settings(self, number: int) -> None:
        super()._write_settings(number)
        with self._file(number, "settings").open("a") as settings:
            settings.write(f"broker.rack={RACKS[number - 1]}\n")


async def record(path: Path) -> None:
    """Play the script against three brokers, and write what they answered."""
    settings = {
        "replica.selector.class": SELECTOR,
        "offsets.topic.num.partitions": "1",
        # Three brokers on a busy machine: no elections among controllers meanwhile.
        "controller.quorum.election.timeout.ms": "10000",
        "controller.quorum.fetch.timeout.ms": "20000",
        "broker.session.timeout.ms": "60000",
    }
    async with _RackedCluster(await class_path(), 3, settings) as cluster:
        await ready(cluster.addresses, {}, 3, 1)
        connections = ClientConnections(cluster.addresses, time.monotonic)

        async def ask(broker: int, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
            return await connections.ask("reader", broker, api, version, body)

        reader = Reader(ask)
        await reader.prepare()
        await asyncio.sleep(_SETTLES_SECONDS)
        seen: dict[str, Any] = {"racks": await reader.write()}
        await asyncio.sleep(_SETTLES_SECONDS)
        seen |= await play(reader)
        await cluster.stop(2)
        await asyncio.sleep(_SETTLES_SECONDS)
        seen |= await play_without_follower(reader)
        connections.close()
    lines = [{"kafka": kafka_version()}, *({"asked": name, "seen": what} for name, what in seen.items())]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    print(f"{len(seen)} answers recorded")


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
