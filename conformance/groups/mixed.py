"""Scripts of groups on the move: of both protocols when migrations become forbidden, and in mid-reconciliation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias

from conformance.groups.classic_member import ClassicMember
from conformance.groups.members import LEAVE, Group, Member
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

POLICY: Final = "group.consumer.migration.policy"


class MixedGroup(Group):
    """A modern member, and a classic one that chose its id."""

    def __init__(self, play: Play, group: str) -> None:
        super().__init__(play, group)
        self.classic = self.new_classic("k")

    def new_classic(self, name: str) -> ClassicMember:
        member = ClassicMember(self.play, name=name, group=self.group)
        member.topics = (self.play.topic,)
        member.member_id = f"{name}-of-{self.group}"
        return member

    async def beat(self, member: ClassicMember) -> Any:
        return await member.ask("Heartbeat", {"generationId": member.generation, "memberId": member.member_id}, 4)

    async def describe(self) -> None:
        await self.ask("ConsumerGroupDescribe", {"groupIds": [self.group]}, 1)
        await self.ask("DescribeGroups", {"groups": [self.group]}, 6)

    async def mix(self) -> None:
        """Both have what they should have."""
        await self.a.join()
        await self.a.acknowledge()
        await self.classic.join()
        await self.a.heartbeat()
        await self.a.acknowledge()
        await self.beat(self.classic)
        await self.classic.join()
        await self.classic.sync()


Probe: TypeAlias = Callable[[MixedGroup], Awaitable[None]]


async def _stays(group: MixedGroup) -> None:
    await group.a.heartbeat()
    await group.beat(group.classic)
    await group.classic.sync()


async def _joins_modern(group: MixedGroup) -> None:
    """The classic member is to join again, and may not."""
    await group.b.join()
    await group.a.heartbeat()
    await group.beat(group.classic)
    await group.classic.sync()
    await group.classic.join()
    await group.beat(group.classic)
    await group.b.heartbeat()
    await group.classic.leave()
    await group.b.heartbeat()
    await group.a.heartbeat()


async def _joins_classic(group: MixedGroup) -> None:
    await group.new_classic("n").join()
    await group.beat(group.classic)


async def _last_modern_leaves(group: MixedGroup) -> None:
    """No way back to a classic group either."""
    await group.a.leave()
    await group.beat(group.classic)
    await group.classic.join()
    await group.describe()
    await group.b.join()
    await group.beat(group.classic)
    await group.classic.leave()
    await group.b.heartbeat()


async def _classic_leaves(group: MixedGroup) -> None:
    await group.classic.leave()
    await group.a.heartbeat()
    await group.new_classic("n").join()


async def _all_leave(group: MixedGroup) -> None:
    """An Empty group may become either kind, whatever the policy."""
    await group.classic.leave()
    await group.a.leave()
    await group.describe()
    member = ClassicMember(group.play, name="n", group=group.group)
    member.topics = (group.play.topic,)
    await member.join()


PROBES: Final[dict[str, Probe]] = {
    "stays": _stays,
    "joins-modern": _joins_modern,
    "joins-classic": _joins_classic,
    "last-modern-leaves": _last_modern_leaves,
    "classic-leaves": _classic_leaves,
    "all-leave": _all_leave,
}


async def _disabled(play: Play) -> None:
    """KAFKA-20640: brokers come back with migrations forbidden while groups are mixed."""
    groups = {name: MixedGroup(play, f"{play.group}-{name}") for name in PROBES}
    for group in groups.values():
        await group.mix()
    await play.restart("stopped", {POLICY: "disabled"})
    for name, probe in PROBES.items():
        await probe(groups[name])
        await groups[name].describe()
    await play.restart("stopped", {POLICY: "bidirectional"})
    for group in groups.values():
        await group.beat(group.classic)
        await group.classic.join()
        await group.describe()


Beat: TypeAlias = Callable[[Member, list[Any]], Awaitable[Any]]

BEATS: Final[dict[str, Beat]] = {
    "older": lambda member, older: member.heartbeat(topicPartitions=older),
    "silent": lambda member, _: member.heartbeat(),
    "newer": lambda member, _: member.acknowledge(),
    "nothing": lambda member, _: member.heartbeat(topicPartitions=[]),
}
"""Partitions that a member claims to own while it takes over the newer of two assignments."""


async def _takes_over(group: Group) -> list[Any]:
    """The first has partitions, and takes over those of the second, which has left; returns what it had before."""
    a, b = group.a, group.b
    await a.join()
    await a.acknowledge()
    await b.join()
    await a.heartbeat()
    await a.acknowledge()
    await b.heartbeat()
    await b.acknowledge()
    older = a.assigned
    await b.leave(LEAVE)
    await a.heartbeat()
    return older


async def _older_assignments(play: Play) -> None:
    """A heartbeat with the assignment before the newest counts as giving up what it does not name."""
    for changes in (True, False):
        for name, beat in BEATS.items():
            group = Group(play, f"{play.group}-{name}-{'changed' if changes else 'same'}")
            older = await _takes_over(group)
            third = Member(play, group.group, "c")
            if changes:
                await third.join()
            await beat(group.a, older)
            if changes:
                await third.heartbeat()
            await group.a.acknowledge()
            await group.ask("ConsumerGroupDescribe", {"groupIds": [group.group]}, 1)


def mixed() -> Iterator[Script]:
    """Both."""
    yield Script("older-assignments", _older_assignments, partitions=3)
    yield Script("disabled-while-mixed", _disabled, partitions=3)
