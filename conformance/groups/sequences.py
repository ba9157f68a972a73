"""Random sequences of a consumer group: members come, acknowledge, stay silent about it, leave and come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.groups.members import LEAVE, LEAVE_FOR_A_WHILE, Member
from conformance.player.random_play import RandomPlay, random_script
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

PARTITIONS: Final = 4


class MemberSequence(RandomPlay):
    """One random sequence of four members, one of which is static."""

    length = 30

    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self._members = [Member(play, play.group, name) for name in "abc"] + [Member(play, play.group, "s", "one")]

    async def step(self) -> None:
        member = self.draw.choice(self._members)
        await self.draw.choice(self.CARDS)(self, member)

    async def end(self) -> None:
        await self.play.ask("admin", "ConsumerGroupDescribe", {"groupIds": [self.play.group]}, 1)

    # --- probes

    async def _join(self, member: Member) -> Any:
        return await (member.acknowledge() if member.epoch else member.join())

    async def _acknowledge(self, member: Member) -> Any:
        return await member.acknowledge()

    async def _stay_silent(self, member: Member) -> Any:
        return await member.heartbeat()

    async def _leave(self, member: Member) -> None:
        await member.leave(LEAVE_FOR_A_WHILE if member.instance_id else LEAVE)
        member.epoch, member.assigned = 0, []

    async def _with_older_epoch(self, member: Member) -> Any:
        return await member.heartbeat(memberEpoch=max(0, member.epoch - 1))

    async def _subscribe(self, member: Member) -> Any:
        return await member.heartbeat(subscribedTopicNames=self.draw.choice(([], [self.play.topic])))

    async def _describe(self, _: Member) -> Any:
        return await self.end()

    CARDS = (
        *3 * (_join,),
        *3 * (_acknowledge,),
        *2 * (_stay_silent,),
        _leave,
        _with_older_epoch,
        _subscribe,
        _describe,
    )
    """Probes, each as often as its weight."""


def sequences(count: int) -> Iterator[Script]:
    """Scripts by seed."""
    for number in range(1, count + 1):
        yield random_script(f"members-{number:03}", MemberSequence, partitions=PARTITIONS)
