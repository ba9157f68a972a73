"""A second member of the client's group, whose requests are not judged."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rejoin.conform.clients.stage import LOOK_SECONDS, OTHER, JudgingBroker
from rejoin.coordinator.testing.results import NoAnswer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest

_OTHER_HEARTBEAT_SECONDS: Final = 0.1
_OTHER_SESSION_MS: Final = 30_000


class SecondMember:
    """A member that subscribes as the client does, follows each rebalance, and gives no assignment itself.

    With ``instance`` it is a static member, and takes the place of the one that has this group.instance.id. While it
    ``holds``, it sends heartbeats and does not join again, so that a rebalance waits for it.
    """

    def __init__(self, coordinator: JudgingBroker, like: JoinGroupRequest, instance: str | None = None) -> None:
        self._coordinator = coordinator
        self._like = like
        self._instance = instance
        self.member_id = ""
        self.generation = -1
        self.holds = False

    async def run(self) -> None:
        """Join, and stay a member until cancelled."""
        await self._join()
        while True:
            await asyncio.sleep(_OTHER_HEARTBEAT_SECONDS)
            beat = HeartbeatRequest(
                group_id=self._like.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance,
            )
            answer: Any = await self._ask(beat)
            if answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS and not self.holds:
                await self._join()

    async def _join(self) -> None:
        while True:
            request = self._like.model_copy(
                update={
                    "member_id": self.member_id,
                    "group_instance_id": self._instance,
                    "session_timeout_ms": _OTHER_SESSION_MS,
                    "reason": None,
                }
            )
            joined = await self._ask(request)
            assert isinstance(joined, JoinGroupResponse)
            self.member_id = joined.member_id or self.member_id
            if joined.error_code is not ErrorCode.NONE:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            self.generation = joined.generation_id
            sync = SyncGroupRequest(
                group_id=self._like.group_id,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=self._instance,
                protocol_type=joined.protocol_type,
                protocol_name=joined.protocol_name,
                assignments=(),
            )
            answer: Any = await self._ask(sync)
            if answer.error_code is ErrorCode.NONE:
                return

    async def leave(self) -> None:
        """Leave the group."""
        member = MemberIdentity(member_id=self.member_id)
        await self._ask(LeaveGroupRequest(group_id=self._like.group_id, members=(member,)))

    async def _ask(self, request: Any) -> Any:
        try:
            return await self._coordinator.call(request, client_id=OTHER)
        except NoAnswer:
            raise asyncio.CancelledError from None  # the broker stops
