"""A consumer in this process that speaks the classic protocol, right or with one thing broken."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from rejoin.conform.clients.stage import GROUP, TOPIC
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.results import NoAnswer
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.types import TopicPartition

BROKEN = {
    "ignores-not-coordinator": "coordinator-moves",
    "joins-anew-at-another-coordinator": "coordinator-moves",
    "ignores-rebalances": "new-member",
    "joins-rebalances-as-a-new-member": "new-member",
    "keeps-its-old-generation": "new-member",
    "keeps-its-lost-member-id": "removed",
    "goes-on-after-removal": "removed",
    "ignores-illegal-generation": "illegal-generation",
    "commits-with-an-illegal-generation": "illegal-generation",
    "joins-after-fencing": "fenced",
    "commits-after-fencing": "fenced",
    "stops-heartbeats-after-a-cut": "connection-cut",
    "joins-anew-after-a-cut": "connection-cut",
    "forgets-a-refused-commit": "commit-refused",
    "forgets-a-lost-commit": "commit-answer-lost",
    "joins-anew-after-a-refused-sync": "sync-refused",
    "gives-up-after-a-lost-join": "join-answer-lost",
    "sends-no-heartbeats": "calm",
    "ignores-its-given-id": "calm",
    "does-not-leave": "close",
    "runs-on-after-sigterm": "close-in-rebalance",
    "joins-anew-while-it-waits": "slow-rebalance",
    "keeps-its-second-member-id": "removed-twice",
    "gives-up-at-a-moved-coordinator": "find-errors",
    "forgets-a-commit-that-timed-out": "commit-errors",
    "loses-a-record": "calm",
    "doubles-a-record": "calm",
}
"""Broken clients, each with the trouble that finds it."""

OF_COORDINATORS = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
FORGETS: dict[ErrorCode | None, tuple[str, ...]] = {ErrorCode.REQUEST_TIMED_OUT: ("forgets-a-commit-that-timed-out",)}
PAUSE_SECONDS = 0.1
RETRY_SECONDS = 0.05


class SmallClient:
    """A consumer that sends a heartbeat and a commit every few milliseconds."""

    def __init__(self, coordinator: GroupCoordinator, broken: str = "", instance: str | None = None) -> None:
        self._coordinator = coordinator
        self._broken = broken
        self._instance = instance
        self._member_id = ""
        self._generation = -1
        self._commit_from = 1
        self._knows_coordinator = False
        self._removals = 0
        self._closing = False
        self._commits = True
        self._beats = True
        self.processed: list[tuple[TopicPartition, int]] = []
        self._task = asyncio.ensure_future(self._run())

    @property
    def problem(self) -> str | None:
        """That it has ended."""
        return "ended" if self._task.done() else None

    async def close(self, seconds: float) -> bool:
        """Leave the group and end."""
        self._closing = self._broken != "runs-on-after-sigterm"
        await asyncio.wait((self._task,), timeout=seconds)
        return self._task.done()

    async def kill(self) -> None:
        """End at once. Raises what made it end before."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        needs_to_join = True
        while not self._closing:
            if not self._knows_coordinator:
                await self._find()
                continue
            if needs_to_join:
                needs_to_join = not await self._join()
                continue
            await asyncio.sleep(PAUSE_SECONDS)
            error = await self._heartbeat() if self._beats else ErrorCode.NONE
            if error is ErrorCode.NONE and self._commits:
                error = await self._commit()
            if error is ErrorCode.FENCED_INSTANCE_ID:
                if self._broken == "commits-after-fencing":
                    for _ in range(9):
                        await self._commit()
                        await asyncio.sleep(PAUSE_SECONDS)
                if self._broken != "joins-after-fencing":
                    return
                needs_to_join = True
            else:
                needs_to_join = self._react(error)
                if needs_to_join and self._broken == "commits-with-an-illegal-generation":
                    for _ in range(3):
                        await self._commit()
        if self._broken != "does-not-leave":
            member = MemberIdentity(member_id=self._member_id)
            await self._ask(LeaveGroupRequest(group_id=GROUP, members=(member,)))

    def _react(self, error: ErrorCode | None) -> bool:
        """Whether to join again."""
        broken = self._broken
        if error is None:
            self._beats = broken != "stops-heartbeats-after-a-cut"
            if broken == "joins-anew-after-a-cut":
                self._member_id = ""
                return True
        if error in OF_COORDINATORS:
            self._knows_coordinator = broken == "ignores-not-coordinator"
            if broken == "joins-anew-at-another-coordinator":
                self._member_id = ""
                return True
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            if broken == "joins-rebalances-as-a-new-member":
                self._member_id = ""
            return broken != "ignores-rebalances"
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            if broken == "goes-on-after-removal":
                return False
            self._removals += 1
            if broken != "keeps-its-lost-member-id" and (broken, self._removals) != ("keeps-its-second-member-id", 2):
                self._member_id = ""
            return True
        return error is ErrorCode.ILLEGAL_GENERATION and broken != "ignores-illegal-generation"

    async def _find(self) -> None:
        answer = await self._ask(FindCoordinatorRequest(coordinator_keys=(GROUP,)))
        self._knows_coordinator = answer is not None and answer.coordinators[0].error_code is ErrorCode.NONE
        if not self._knows_coordinator:
            if answer is not None and answer.coordinators[0].error_code is ErrorCode.NOT_COORDINATOR:
                self._closing = self._broken == "gives-up-at-a-moved-coordinator"
            await asyncio.sleep(RETRY_SECONDS)

    async def _join(self) -> bool:
        protocol = JoinGroupRequestProtocol(name="range", metadata=encode_subscription(Subscription((TOPIC,))))
        joined = await self._wait_for_join(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=self._member_id,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocols=(protocol,),
            )
        )
        if joined is None:
            self._closing = self._broken == "gives-up-after-a-lost-join"
            return False
        if joined.error_code is not ErrorCode.NONE:
            if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED and self._broken != "ignores-its-given-id":
                self._member_id = joined.member_id
            elif joined.error_code is ErrorCode.UNKNOWN_MEMBER_ID and not self._broken.startswith("keeps-its-"):
                self._member_id = ""
            self._knows_coordinator = joined.error_code not in OF_COORDINATORS
            await asyncio.sleep(RETRY_SECONDS)
            return False
        self._member_id = joined.member_id
        if self._broken != "keeps-its-old-generation" or self._generation < 0:
            self._generation = joined.generation_id
        synced = await self._ask(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=joined.generation_id,
                member_id=self._member_id,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"") for each in joined.members
                ),
            )
        )
        self._beats = self._broken != "sends-no-heartbeats"
        is_synced = synced is not None and synced.error_code is ErrorCode.NONE
        if not is_synced:
            self._knows_coordinator = synced is None or synced.error_code not in OF_COORDINATORS
            await asyncio.sleep(RETRY_SECONDS)
        if not is_synced and self._broken == "joins-anew-after-a-refused-sync":
            self._member_id = ""
        return is_synced

    async def _wait_for_join(self, request: JoinGroupRequest) -> Any:
        if self._broken != "joins-anew-while-it-waits" or not self._member_id:
            return await self._ask(request)
        try:
            return await asyncio.wait_for(self._ask(request), 2 * PAUSE_SECONDS)
        except TimeoutError:
            self._member_id = ""
            return None

    async def _heartbeat(self) -> ErrorCode | None:
        answer = await self._ask(
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance,
            )
        )
        return None if answer is None else answer.error_code

    async def _commit(self) -> ErrorCode | None:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._commit_from, committed_metadata=""
        )
        answer = await self._ask(
            OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
            ),
            9,
        )
        error = None if answer is None else answer.topics[0].partitions[0].error_code
        if error is ErrorCode.NONE:
            self._process(self._commit_from - 1)
            self._commit_from += 1
        elif self._broken in FORGETS.get(error, ("forgets-a-refused-commit", "forgets-a-lost-commit")):
            self._commits = False
        # A connection that ended under a commit leaves the membership as it is.
        return ErrorCode.NONE if error is None else error

    def _process(self, offset: int) -> None:
        """The record of an offset, which it reads nowhere: its commits count up by themselves."""
        times = {"loses-a-record": 0, "doubles-a-record": 2}.get(self._broken, 1) if offset == 1 else 1
        self.processed += [(TopicPartition(TOPIC, 0), offset)] * times

    async def _ask(self, request: Any, version: int | None = None) -> Any:
        try:
            return await self._coordinator.call(request, version, client_id="small")
        except NoAnswer:
            await asyncio.sleep(RETRY_SECONDS)
            return None
