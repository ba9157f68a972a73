"""Logs that are nothing but rebalances: what `rejoin why FILE` does grows with the lines and no faster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from rejoin.pipeline.reading.log_events import events_of_files
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.why.sources import open_source
from tests.benchmarks.calls import calls_of

FEW, MANY = 15, 90
"""Rebalances."""
LATE = (
    "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms, which typically implies that the poll loop is spending too much time processing "
    "messages. You can address this either by increasing max.poll.interval.ms or by reducing the maximum size of "
    "batches returned in poll() with max.poll.records."
)
LOST = (
    "Group coordinator kafka-1:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause: coordinator "
    "unavailable. isDisconnected: false. Rediscovery will be attempted."
)
FOUND = "Discovered group coordinator kafka-1:9092 (id: 2147483646 rack: null)"


def joined(number: int, member: str) -> tuple[tuple[int, str], ...]:
    """Seconds and texts of a member that joins a generation."""
    generation = f"Generation{{generationId={number}, memberId='{member}', protocol='range'}}"
    return (
        (20, "(Re-)joining group"),
        (23, f"Successfully joined group with generation {generation}"),
        (23, f"Successfully synced group in generation {generation}"),
        (23, f"Adding newly assigned partitions: bills-{member[2]}"),
    )


def of_others(nth: int, client: str) -> tuple[tuple[int, str], ...]:
    return ((0, "Request joining group due to: group is already rebalancing"), *joined(nth, f"{client}-0b0c"))


def late(nth: int, client: str) -> tuple[tuple[int, str], ...]:
    return ((0, LATE), *joined(nth, f"{client}-{nth:04x}"))


def of_other_clusters(nth: int, client: str) -> tuple[tuple[int, str], ...]:
    return joined(7 - nth % 7, f"{client}-{nth:04x}")


def lost(nth: int, client: str) -> tuple[tuple[int, str], ...]:
    return ((0, LOST), (15, FOUND), *joined(nth, f"{client}-0b0c"))


def restarted(nth: int, client: str) -> tuple[tuple[int, str], ...]:
    return (*joined(2 * nth, f"{client}-{nth:04x}"), (40, "Member left: Consumer is being closed"))


Scene = Callable[[int, str], tuple[tuple[int, str], ...]]


def written(path: Path, scene: Scene, rebalances: int) -> Path:
    """The log of two consumers, which are in one process."""
    began = datetime(2025, 3, 9, tzinfo=UTC)
    lines = [
        (began + timedelta(seconds=180 * nth + seconds), client, text)
        for nth in range(1, rebalances + 1)
        for client in ("b-1", "b-2")
        for seconds, text in scene(nth, client)
    ]
    path.write_text(
        "".join(
            f"{at:%Y-%m-%d %H:%M:%S},000 INFO [Consumer clientId={client}, groupId=bills] {text} "
            "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)\n"
            for at, client, text in sorted(lines)
        )
    )
    return path


@pytest.mark.parametrize("scene", [of_others, late, of_other_clusters, lost, restarted])
def test_work_grows_with_the_rebalances_and_no_faster(scene: Scene, tmp_path: Path) -> None:
    logs = [written(tmp_path / f"{number}.log", scene, number) for number in (FEW, MANY)]
    rows = [list(read_file(str(log), None, "UTC")) for log in logs]
    events_of_files(rows[0])  # what is made once
    few, many = (calls_of(partial(events_of_files, each)) for each in rows)
    assert many < 1.2 * MANY / FEW * few
    sources = [open_source(log) for log in logs]
    assert sources[0].story("bills").rebalances  # what is made once
    few, many = (calls_of(partial(each.story, "bills")) for each in sources)
    assert many < 1.2 * MANY / FEW * few
