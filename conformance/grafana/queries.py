"""Evaluates the dashboard's queries with Prometheus' own engine on what ``/metrics`` gives: ``make dashboard-queries``.

A coordinator on a virtual clock is scraped every 15 seconds of five minutes, in which members join two groups and one
group commits more slowly than records come. The program in ``promql/`` then asks every query of the dashboard.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

DASHBOARD: Final = Path(__file__).parents[2] / "examples" / "grafana" / "consumer-groups.json"
ENGINE: Final = Path(__file__).parent / "promql"
EVERY_MS: Final = 15_000
SCRAPES: Final = 21
TOPIC: Final = "orders"
"""Its partitions get two records a second."""


async def scrape(coordinator: GroupCoordinator, folder: Path) -> Path:
    """Keep what ``/metrics`` gives in a file that is named for its second."""

    def read() -> bytes:
        with urlopen(f"{coordinator.url}/metrics", timeout=30) as answer:
            return bytes(answer.read())

    path = folder / f"{coordinator.now_ms // 1_000}.prom"
    path.write_bytes(await asyncio.to_thread(read))
    return path


async def join(coordinator: GroupCoordinator, group_id: str) -> None:
    """A new member of a consumer group."""
    await coordinator.call(
        ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=str(uuid.uuid4()),
            member_epoch=0,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=(TOPIC,),
            topic_partitions=(),
        )
    )


async def commit(coordinator: GroupCoordinator, group_id: str, offset: int) -> None:
    """Commit an offset of each partition from outside the group."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=at, committed_offset=offset, committed_metadata="")
        for at in (0, 1)
    )
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),)
    request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    await coordinator.call(request, version=9)


async def scrapes(folder: Path) -> list[Path]:
    """Play the five minutes."""
    found = []
    # Members send no heartbeats here, and none shall be missed.
    settings = {"group.consumer.max.session.timeout.ms": 900_000, "group.consumer.session.timeout.ms": 900_000}
    async with running(clock="virtual", settings=settings) as coordinator:
        await coordinator.set_topic(TOPIC, 2, 2.0)
        for number in range(SCRAPES):
            if number % 5 == 0:
                await join(coordinator, "orders-app")
                await join(coordinator, "payments-app")
            await commit(coordinator, "reports", 10 * number)
            await coordinator.advance(EVERY_MS)
            found.append(await scrape(coordinator, folder))
    return found


def main() -> int:
    """Print what each query finds; the exit code."""
    with tempfile.TemporaryDirectory(prefix="rejoin-promql-") as folder:
        program = Path(folder, "promql")
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=ENGINE, check=True)
        files = asyncio.run(scrapes(Path(folder)))
        return subprocess.run([program, DASHBOARD, *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
