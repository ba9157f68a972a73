"""A disk that is full: nothing is said to be stored, everything else goes on, and the group recovers with the disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest

from rejoin.coordinator.service import exposition
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.http.group_metrics import GroupGauges
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.service.writability import LEAST_FREE_BYTES, disk_problem
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.durability.members import NONE, SETTINGS, Member

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


async def room_for(app: App, pages: int) -> None:
    """Let the database have so many pages: a disk that is full, or is not any more."""
    log = app.store.log
    assert isinstance(log, SqliteLog)
    done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    log.database.submit(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone(), done.set_result)
    await asyncio.wait_for(done, 60)


async def test_a_full_disk_stops_commits_and_nothing_else(tmp_path: Path) -> None:
    options = Options(settings=SETTINGS, data=tmp_path / "data", topics=(InitialTopic("orders", 1),), listen=False)
    async with App(options) as app:
        store = app.metrics.store
        member = Member(app)
        assert await member.join() is NONE
        assert await member.commit(5) is NONE
        await room_for(app, 1)
        acknowledged = 5
        refused = 0
        for number in range(6, 60):
            error = await member.commit(number, "x" * 4_000)
            assert error in (NONE, NOT_COORDINATOR)
            acknowledged, refused = (number, refused) if error is NONE else (acknowledged, refused + 1)
            assert await member.beat() is NONE, "heartbeats go on"
            assert await member.committed() == acknowledged, "and reads, which show what is stored"
        assert refused > 30
        assert disk_problem([], store, app.publisher) == "the offsets log cannot be written: the last append failed"
        page = exposition.page(app.metrics, app.runtime.node.describe(), 0, 0, 0, GroupGauges()).decode()
        assert f'rejoin_store_appends_failed_total{{error="KAFKA_STORAGE_ERROR"}} {refused}.0' in page
        await room_for(app, 1_000_000)
        assert await member.commit(100) is NONE
        assert disk_problem([tmp_path], store, app.publisher) == ""
        assert await member.join() is NONE
        assert await member.beat() is NONE
        generation = member.generation
    async with App(options) as app:
        again = Member(app)
        again.member_id, again.generation = member.member_id, generation
        assert await again.committed() == 100
        assert await again.beat() is NONE, "the same generation, the same member"


async def test_a_node_whose_disk_is_full_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(port=0, journal=tmp_path / "journal")
    async with App(options) as app, aiohttp.ClientSession(app.url) as session:

        async def readiness() -> tuple[int, str]:
            async with session.get("/readyz") as answer:
                return answer.status, (await answer.json()).get("problem", "")

        assert await readiness() == (200, "")
        with monkeypatch.context() as patched:
            patched.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=0, f_frsize=4_096))
            expected = f"the disk of {tmp_path / 'journal'} is full: 0 bytes are free, expected {LEAST_FREE_BYTES}"
            assert await readiness() == (503, expected)
        assert await readiness() == (200, "")
