"""A machine whose clock is set back over a restart: no end of a topic goes back."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.clock import ClockFile, Uptime
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.coordinator.service.helpers import ManualClock

DAY_MS = 86_400_000


async def end_of(app: App) -> int:
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=(latest,)),))
    answer = await app.runtime.submit(request, Context(api_version=5)).answer()
    assert isinstance(answer, ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def node(folder: Path, millis: int) -> tuple[App, ManualClock]:
    clock = ManualClock()
    clock.advance(millis)
    return App(Options(clock=clock, data=folder, topics=(InitialTopic("orders", 1, 5.0),), listen=False)), clock


async def test_no_end_goes_back_with_the_clock(tmp_path: Path) -> None:
    app, clock = node(tmp_path, DAY_MS)
    async with app:
        clock.advance(3_600_000)
        answered = await end_of(app)
        assert answered > 3_600 * 4
    for _ in range(2):
        app, clock = node(tmp_path, 0)
        async with app:
            assert await end_of(app) == answered
            clock.advance(60_000)
            assert await end_of(app) == answered, "it stands still"


async def test_nothing_changes_where_the_clock_is_right(tmp_path: Path) -> None:
    app, clock = node(tmp_path, 0)
    async with app:
        clock.advance(60_000)
        answered = await end_of(app)
    app, clock = node(tmp_path, 60_000)
    async with app:
        assert await end_of(app) == answered
        clock.advance(1_000)
        assert await end_of(app) == answered + 5


@pytest.mark.parametrize("back_ms", [1, 500, 9_000, 60_000])
async def test_a_killed_nodes_last_seconds_count(tmp_path: Path, back_ms: int) -> None:
    clock = ManualClock()
    clock.advance(DAY_MS)
    ClockFile(tmp_path, clock, lambda: Uptime("boot-1", 5_000)).begin()
    killed_at = clock.now() + 9_990  # just before it would have written the file again
    clock.advance(9_990 + 200 - back_ms)
    same_boot = ClockFile(tmp_path, clock, lambda: Uptime("boot-1", 5_000 + 9_990 + 200))
    assert max(same_boot.newest(), clock.now()) == killed_at + 200, "as the clock would show if it had been left alone"
    other_boot = ClockFile(tmp_path, clock, lambda: Uptime("boot-2", 90_000))
    assert killed_at <= max(other_boot.newest(), clock.now()) <= killed_at + 200
    unknown = ClockFile(tmp_path, clock, lambda: None)
    assert killed_at <= max(unknown.newest(), clock.now()) <= killed_at + 200


async def test_a_killed_node_with_the_right_clock_goes_on_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    clock.advance(DAY_MS)
    ClockFile(tmp_path, clock, lambda: Uptime("boot-1", 5_000)).begin()
    clock.advance(300)
    assert ClockFile(tmp_path, clock, lambda: Uptime("boot-1", 5_300)).newest() == 0


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "[]", '{"newest": "x"}', '{"newest": Infinity}', "", "yesterday", "9" * 5_000]
)
async def test_a_file_that_says_nothing_sensible_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "clock").write_text(text)
    app, clock = node(tmp_path, 0)
    logs.configure("warning", out := io.StringIO())
    try:
        async with app:
            clock.advance(1_000)
            assert await end_of(app) <= 5
    finally:
        logs.configure("critical")
    (warned,) = [line for line in map(json.loads, out.getvalue().splitlines()) if line["event"] == "clock_file_ignored"]
    assert warned["file"] == str(tmp_path / "clock")
