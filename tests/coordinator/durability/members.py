"""The only member of a group, asking a node in this process directly."""

from __future__ import annotations

import asyncio
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

SETTINGS = Settings.model_validate({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1})
GROUP = "orders-app"
NONE = ErrorCode.NONE


class Member:
    """The only member of a group."""

    def __init__(self, app: App, group: str = GROUP) -> None:
        self.app = app
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.assignment = b""

    async def ask(self, request: Request, version: int) -> Any:
        while True:
            answer: Any = await asyncio.wait_for(self.app.runtime.submit(request, Context(version, "c")).answer(), 60)
            if getattr(answer, "error_code", NONE) is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return answer
            await asyncio.sleep(0.01)

    async def join(self) -> ErrorCode:
        """Join and sync; the error of whichever failed."""
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0"),)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="emulator",
            protocols=protocols,
        )
        joined = await self.ask(request, 3)
        refused: ErrorCode = joined.error_code
        if refused is not NONE:
            return refused
        self.member_id, self.generation = joined.member_id, joined.generation_id
        mine = (SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"mine"),)
        sync = SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, assignments=mine
        )
        synced = await self.ask(sync, 3)
        self.assignment = synced.assignment
        error: ErrorCode = synced.error_code
        return error

    async def beat(self) -> ErrorCode:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        error: ErrorCode = (await self.ask(request, 4)).error_code
        return error

    async def commit(self, offset: int, metadata: str = "") -> ErrorCode:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=(OffsetCommitRequestTopic(name="orders", partitions=(partition,)),),
        )
        error: ErrorCode = (await self.ask(request, 8)).topics[0].partitions[0].error_code
        return error

    async def committed(self) -> int:
        topics = (OffsetFetchRequestTopics(name="orders", partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.group, topics=topics),))
        while True:
            group = (await self.ask(request, 8)).groups[0]
            if group.error_code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                offset: int = group.topics[0].partitions[0].committed_offset
                return offset
            await asyncio.sleep(0.01)
