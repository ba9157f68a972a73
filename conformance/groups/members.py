"""Members of consumer groups, and states of such groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from conformance.groups.classic_member import ClassicMember
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play

REBALANCE_TIMEOUT_MS: Final = 30_000
LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2


class Member:
    """A member that remembers its epoch and what it was assigned."""

    def __init__(self, play: Play, group: str, name: str, instance_id: str | None = None) -> None:
        self.play = play
        self.group = group
        self.name = name
        self.member_id = f"{name}-of-{group}"
        self.instance_id = instance_id
        self.epoch = 0
        self.assigned: list[Json] = []

    async def ask(self, api: str, body: Json, version: int | None = None) -> Any:
        return await self.play.ask(self.name, api, body, version)

    async def heartbeat(self, version: int = 1, **over: Any) -> Any:
        """One with what changed alone, unless more is said."""
        body = {"groupId": self.group, "memberId": self.member_id, "memberEpoch": self.epoch}
        answer = await self.ask("ConsumerGroupHeartbeat", body | over, version)
        if isinstance(answer, dict) and not answer["errorCode"]:
            self.epoch = answer["memberEpoch"]
            if answer["assignment"] is not None:
                self.assigned = answer["assignment"]["topicPartitions"]
        return answer

    @property
    def whole(self) -> Json:
        """All fields, as a member joins with them."""
        return {
            "instanceId": self.instance_id,
            "rebalanceTimeoutMs": REBALANCE_TIMEOUT_MS,
            "subscribedTopicNames": [self.play.topic],
            "topicPartitions": [],
        }

    async def join(self, version: int = 1, **over: Any) -> Any:
        return await self.heartbeat(version, **(self.whole | {"memberEpoch": 0} | over))

    async def acknowledge(self) -> Any:
        """Say that what was assigned is owned, and nothing else."""
        return await self.heartbeat(topicPartitions=self.assigned)

    async def leave(self, epoch: int = LEAVE) -> Any:
        return await self.heartbeat(memberEpoch=epoch)


class Group:
    """The members of one group, some of which may be classic."""

    def __init__(self, play: Play, group: str) -> None:
        self.play = play
        self.group = group
        self.a = Member(play, group, "a")
        self.b = Member(play, group, "b")
        self.static = Member(play, group, "s", "one")

    async def ask(self, api: str, body: Json, version: int | None = None) -> Any:
        return await self.play.ask("admin", api, body, version)


State: TypeAlias = Callable[[Group], Awaitable[None]]


async def _none(_: Group) -> None:
    """There is no such group."""


async def _one(group: Group) -> None:
    await group.a.join()


async def _reconciling(group: Group) -> None:
    """The first has to give up partitions that the second waits for."""
    await group.a.join()
    await group.a.acknowledge()
    await group.b.join()
    await group.a.heartbeat()


async def _stable(group: Group) -> None:
    await _reconciling(group)
    await group.a.acknowledge()
    await group.a.heartbeat()
    await group.b.heartbeat()
    await group.b.acknowledge()


async def _static(group: Group) -> None:
    await group.a.join()
    await group.static.join()


async def _static_away(group: Group) -> None:
    await _static(group)
    await group.static.leave(LEAVE_FOR_A_WHILE)


async def _left(group: Group) -> None:
    await group.a.join()
    await group.a.leave()


async def _simple(group: Group) -> None:
    """Offsets alone."""
    partitions = [{"partitionIndex": 0, "committedOffset": 3, "committedMetadata": ""}]
    topics = [{"name": group.play.topic, "partitions": partitions}]
    body = {"groupId": group.group, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": topics}
    await group.ask("OffsetCommit", body, 9)


async def _classic(group: Group) -> None:
    """A stable group of one classic member."""
    member = ClassicMember(group.play, name="k", group=group.group)
    member.topics = (group.play.topic,)
    await member.join()
    await member.sync()


async def _classic_beside(group: Group) -> None:
    """A member of the consumer protocol has joined a classic one."""
    await _classic(group)
    await group.a.join()


STATES: Final[dict[str, State]] = {
    "none": _none,
    "one": _one,
    "reconciling": _reconciling,
    "stable": _stable,
    "static": _static,
    "static-away": _static_away,
    "left": _left,
    "simple": _simple,
    "classic": _classic,
    "classic-beside": _classic_beside,
}
