"""A store that breaks while it is used and comes back: refused, made read-only, locked by another process.

Nothing is acknowledged that a restart would not show, everything that needs no store goes on, and groups recover.
"""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.durability.members import NONE, SETTINGS, Member
from tests.coordinator.durability.service import PATIENCE, Committer, Service

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


def options(folder: Path, settings: Settings = SETTINGS) -> Options:
    return Options(settings=settings, data=folder, topics=(InitialTopic("orders", 1),), listen=False)


def writable(app: App, is_writable: bool) -> None:
    """Take the right to write from the connection that writes, as a file system that turned read-only does."""
    log = app.store.log
    assert isinstance(log, SqliteLog)
    log.database._connections[0].execute(f"PRAGMA query_only = {int(not is_writable)}")


async def test_a_store_that_turned_read_only_stops_what_must_be_stored_and_nothing_else(tmp_path: Path) -> None:
    async with App(options(tmp_path / "data")) as app:
        member = Member(app)
        assert await member.join() is NONE
        assert await member.commit(5) is NONE
        writable(app, False)
        assert await member.commit(6) is NOT_COORDINATOR
        assert await member.committed() == 5
        assert await member.beat() is NONE
        assert await Member(app, "another-app").join() is NOT_COORDINATOR
        writable(app, True)
        assert await member.commit(7) is NONE
        assert await member.beat() is NONE, "and it is in the generation in which it was"
    async with App(options(tmp_path / "data")) as app:
        again = Member(app)
        again.member_id, again.generation = member.member_id, member.generation
        assert await again.committed() == 7
        assert await again.beat() is NONE
        assert app.runtime.node.group_ids() == [member.group], "and none that could not be stored"


async def test_an_assignment_that_cannot_be_stored_reaches_no_member(tmp_path: Path) -> None:
    """SyncGroup is refused, the generation ends, and the one after it is stored when the store can be written to."""
    async with App(options(tmp_path / "data")) as app:
        member = Member(app)
        assert await member.join() is NONE
        stored = member.generation
        writable(app, False)
        assert await member.join() is NOT_COORDINATOR
        assert (member.generation, member.assignment) == (stored + 1, b"")
        assert await member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        writable(app, True)
        assert await member.join() is NONE
        assert (member.generation, member.assignment) == (stored + 2, b"mine")
    async with App(options(tmp_path / "data")) as app:
        again = Member(app)
        again.member_id, again.generation = member.member_id, member.generation
        assert await again.beat() is NONE


async def test_a_store_that_hangs_is_answered_for_in_time(tmp_path: Path) -> None:
    """Another process has locked the database. What was refused may be stored later, and is shown once it is."""
    settings = SETTINGS.model_copy(update={"offsets_commit_timeout_ms": 50})
    async with App(options(tmp_path / "data", settings)) as app:
        member = Member(app)
        assert await member.join() is NONE
        assert await member.commit(5) is NONE
        other = sqlite3.connect(tmp_path / "data" / DATABASE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await member.commit(6) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await member.beat() is NONE
        assert await member.committed() == 5
        other.execute("ROLLBACK")
        other.close()
        async with asyncio.timeout(PATIENCE):
            while await member.committed() != 6:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    async with App(options(tmp_path / "data")) as app:
        assert await Member(app).committed() == 6


@pytest.mark.parametrize("ends", ["goes on", "is killed"])
def test_a_disk_that_refuses_every_write_loses_nothing_that_was_acknowledged(tmp_path: Path, ends: str) -> None:
    """The kernel refuses each write to a file: of the database, of the mark beside it, of the journal and the log."""
    service = Service(tmp_path, ["--data", str(tmp_path / "data")], {"offsets.topic.num.partitions": "4"}, "orders:1")
    service.start()
    committers = [Committer(service.port, number, "orders") for number in range(3)]
    try:
        for committer in committers:
            committer.start()
        for _ in range(3):
            past([committer.acknowledged + 20 for committer in committers], committers, "acknowledged")
            assert service.process is not None
            whole = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (0, whole[1]))
            # Refused, and looked at what is stored: reads go on, and show what was acknowledged.
            past([committer.looked + 5 for committer in committers], committers, "looked")
            stuck = [committer.acknowledged for committer in committers]
            past([committer.looked + 5 for committer in committers], committers, "looked")
            assert [committer.acknowledged for committer in committers] == stuck, "nothing is stored meanwhile"
            if ends == "is killed":
                service.kill()
                service.start()
            else:
                resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, whole)
        past([committer.acknowledged + 20 for committer in committers], committers, "acknowledged")
    finally:
        for committer in committers:
            committer.stop()
            committer.join(PATIENCE)
        service.kill()
    assert [committer.problem for committer in committers] == [None] * len(committers)


@pytest.mark.parametrize("room", [0, 20_000, 40_000], ids=["none", "for some of it", "for most of it"])
@pytest.mark.parametrize("is_new", [True, False], ids=["a new directory", "a killed one"])
def test_a_start_without_room_says_so_and_the_next_one_has_everything(tmp_path: Path, is_new: bool, room: int) -> None:
    """The kernel refuses to make a file longer: nothing is damaged, and no message asks to restore a copy."""
    data = tmp_path / "data"
    service = Service(tmp_path, ["--data", str(data)], {"offsets.topic.num.partitions": "4"}, "orders:1")
    acknowledged = -1
    if not is_new:
        service.start()
        committer = Committer(service.port, 0, "orders")
        committer.start()
        past([20], [committer], "acknowledged")
        service.kill()
        committer.stop()
        committer.join(PATIENCE)
        acknowledged = committer.acknowledged
    refused = subprocess.run(
        [sys.executable, "-m", "rejoin", "serve", "--data", data, "--port", "0"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert f"rejoin serve: {data / DATABASE} cannot be opened: " in refused.stderr
    assert "expected a disk that works and has room, and the right to write" in refused.stderr

    async def stored() -> int:
        async with App(options(data, SETTINGS.model_copy(update={"offsets_topic_num_partitions": 4}))) as app:
            return await Member(app, "solo-0").committed()

    assert asyncio.run(stored()) >= acknowledged


def past(goals: list[int], committers: list[Committer], what: str) -> None:
    """Wait until each has come so far, or has found a problem."""
    deadline = time.monotonic() + PATIENCE
    while any(getattr(each, what) < goal for each, goal in zip(committers, goals, strict=True)):
        assert [committer.problem for committer in committers] == [None] * len(committers)
        assert time.monotonic() < deadline, f"{what}: {[getattr(each, what) for each in committers]}, wanted {goals}"
        time.sleep(0.01)
