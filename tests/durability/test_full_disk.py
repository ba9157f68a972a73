"""A disk that is full: nothing is said to be stored, everything else goes on, and the group recovers with the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from coordinator.config import Settings
from coordinator.core.inputs import Context
from coordinator.offsets_log.sqlite import SqliteLog
from coordinator.server.app import App, Options, Topic
from protocol.base import Request
from protocol.errors import ErrorCode
from protocol.heartbeat import HeartbeatRequest
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SETTINGS = Settings.model_validate({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1})
GROUP = "orders-app"
NONE, NOT_COORDINATOR = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR


class Member:
    """The only member of a group."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.member_id = ""
        self.generation = -1

    async def ask(self, request: Request, version: int) -> Any:
        while True:
            answer: Any = await asyncio.wait_for(self.app.runtime.submit(request, Context(version, "c")).answer(), 60)
            if getattr(answer, "error_code", NONE) is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return answer
            await asyncio.sleep(0.01)

    async def join(self) -> ErrorCode:
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0"),)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="emulator",
            protocols=protocols,
        )
        joined = await self.ask(request, 3)
        if joined.error_code is not NONE:
            return joined.error_code
        self.member_id, self.generation = joined.member_id, joined.generation_id
        mine = (SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"mine"),)
        sync = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id, assignments=mine
        )
        error: ErrorCode = (await self.ask(sync, 3)).error_code
        return error

    async def beat(self) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        error: ErrorCode = (await self.ask(request, 4)).error_code
        return error

    async def commit(self, offset: int, metadata: str = "") -> ErrorCode:
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=(OffsetCommitRequestTopic(name="orders", partitions=(place,)),),
        )
        error: ErrorCode = (await self.ask(request, 8)).topics[0].partitions[0].error_code
        return error

    async def committed(self) -> int:
        topics = (OffsetFetchRequestTopics(name="orders", partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=topics),))
        while True:
            group = (await self.ask(request, 8)).groups[0]
            if group.error_code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                offset: int = group.topics[0].partitions[0].committed_offset
                return offset
            await asyncio.sleep(0.01)


async def room_for(app: App, pages: int) -> None:
    """Let the database have so many pages: a disk that is full, or is not any more."""
    log = app.store.log
    assert isinstance(log, SqliteLog)
    done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    log.database.submit(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone(), done.set_result)
    await asyncio.wait_for(done, 60)


async def test_a_full_disk_stops_commits_and_nothing_else(tmp_path: Path) -> None:
    options = Options(settings=SETTINGS, data=tmp_path / "data", topics=(Topic("orders", 1),), listen=False)
    async with App(options) as app:
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
        page = app.metrics.render(app.runtime.node.describe(0), 0, 0, 0)
        assert f'rejoin_store_appends_failed_total{{error="KAFKA_STORAGE_ERROR"}} {refused}' in page
        await room_for(app, 1_000_000)
        assert await member.commit(100) is NONE
        assert await member.join() is NONE
        assert await member.beat() is NONE
        generation = member.generation
    async with App(options) as app:
        again = Member(app)
        again.member_id, again.generation = member.member_id, generation
        assert await again.committed() == 100
        assert await again.beat() is NONE, "the same generation, the same member"
