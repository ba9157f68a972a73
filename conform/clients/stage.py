"""The broker on which one trouble is played, with a second member that can join the client's group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rejoin.conform.clients.observed import ClientLife, is_accepted, only
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.results import NoAnswer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest

TOPIC: Final = "conform-topic"
GROUP: Final = "conform-group"
PARTITIONS: Final = 4
OTHER: Final = "rejoin-conform-other"
"""Client id of the second member, whose requests are not judged."""

_LOOK_SECONDS: Final = 0.05
_OTHER_HEARTBEAT_SECONDS: Final = 0.1
_OTHER_SESSION_MS: Final = 30_000


@dataclass(frozen=True)
class TimeLimits:
    """Longest waits in seconds: for the client's start, for a trouble to meet it, and for its reaction."""

    start: float = 30.0
    meeting: float = 15.0
    reaction: float = 30.0
    closing: float = 10.0


class ClientProgram(Protocol):
    """A client that was started."""

    @property
    def problem(self) -> str | None:
        """Why it runs no longer, or should not; None while it runs."""

    async def close(self, seconds: float) -> bool:
        """Ask it to end; whether it ended by itself within these seconds."""

    async def kill(self) -> None:
        """End it, and all that it started."""


class TroubleStage:
    """A broker, and the client on it."""

    def __init__(self, coordinator: GroupCoordinator, limits: TimeLimits) -> None:
        self.coordinator = coordinator
        self.limits = limits
        self.program: ClientProgram | None = None
        self.since = 0
        self.asked_to_end = False
        self.closed = False

    async def life(self) -> ClientLife:
        """Requests of the client up to now."""
        found = [each for each in await self.coordinator.requests() if each.client_id != OTHER]
        return ClientLife(tuple(found), self.since, self.closed)

    async def begin(self) -> None:
        """From here on there is trouble."""
        self.since = await self.coordinator.mark()

    async def until(self, condition: Callable[[ClientLife], bool], seconds: float) -> bool:
        """Wait until the client's requests meet a condition; false where they do not in time, or the client ended."""
        end = asyncio.get_running_loop().time() + seconds
        seen = -1
        while True:
            mark = await self.coordinator.mark()
            if mark != seen and condition(await self.life()):
                return True
            seen = mark
            if asyncio.get_running_loop().time() > end or (self.program is not None and self.program.problem):
                return False
            await asyncio.sleep(_LOOK_SECONDS)

    async def one_more_heartbeat(self, seconds: float) -> bool:
        """Wait until one more heartbeat of the client is accepted."""
        mark = await self.coordinator.mark()
        return await self.until(lambda life: any(each.mark > mark for each in accepted_heartbeats(life)), seconds)


def accepted_heartbeats(life: ClientLife) -> list[RecordedRequest]:
    """Heartbeats that were answered without an error."""
    return [each for each in only(life.requests, "Heartbeat", "ConsumerGroupHeartbeat") if is_accepted(each)]


def has_joined(life: ClientLife) -> bool:
    """Whether the client is a member with an assignment."""
    if any(is_accepted(each) for each in only(life.requests, "SyncGroup")):
        return True
    answers: list[Any] = [each.response for each in only(life.requests, "ConsumerGroupHeartbeat") if is_accepted(each)]
    return any(each.assignment is not None and each.assignment.topic_partitions for each in answers)


def last_join(requests: Sequence[RecordedRequest]) -> JoinGroupRequest | None:
    """The client's last JoinGroup."""
    joins = [each.request for each in only(requests, "JoinGroup")]
    request = joins[-1] if joins else None
    assert request is None or isinstance(request, JoinGroupRequest)
    return request


class SecondMember:
    """A member that subscribes as the client does, follows each rebalance, and gives no assignment itself.

    With ``instance`` it is a static member, and takes the place of the one that has this group.instance.id.
    """

    def __init__(self, coordinator: GroupCoordinator, like: JoinGroupRequest, instance: str | None = None) -> None:
        self._coordinator = coordinator
        self._like = like
        self._instance = instance
        self.member_id = ""
        self.generation = -1

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
            if answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS:
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
                await asyncio.sleep(_LOOK_SECONDS)
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
