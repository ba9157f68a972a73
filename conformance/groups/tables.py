"""Scripts from tables: requests of a kind, each to a group of its own that was brought into a state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias

from conformance.groups.classic_member import ClassicMember
from conformance.groups.members import LEAVE, LEAVE_FOR_A_WHILE, STATES, Group, Member, State
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

Probe: TypeAlias = Callable[[Group], Awaitable[Any]]


def _beat(epoch: int = 0, version: int = 1, *, whole: bool = False, **over: Any) -> Probe:
    async def probe(group: Group) -> None:
        more = (group.a.whole if whole else {}) | {"memberEpoch": group.a.epoch + epoch} | over
        await group.a.heartbeat(version, **more)
        await group.b.heartbeat()

    return probe


def _join(version: int = 1, **over: Any) -> Probe:
    async def probe(group: Group) -> None:
        member = Member(group.play, group.group, "c", over.get("instanceId"))
        await member.join(version, **over)
        await group.a.heartbeat()
        await member.heartbeat()

    return probe


def _commit(epoch: int = 0, version: int = 9, **over: Any) -> Probe:
    async def probe(group: Group) -> None:
        play = group.play
        name = {"topicId": play.topic_id} if version >= 10 else {"name": play.topic}
        partitions = [{"partitionIndex": 0, "committedOffset": 7, "committedMetadata": "m"}]
        body: Json = {
            "groupId": group.group,
            "generationIdOrMemberEpoch": group.a.epoch + epoch,
            "memberId": group.a.member_id,
            "topics": [{**name, "partitions": partitions}],
        }
        await group.ask("OffsetCommit", body | over, version)
        for member in ({}, {"memberId": group.a.member_id, "memberEpoch": group.a.epoch + epoch}):
            wanted = {"groupId": group.group, "topics": [{**name, "partitionIndexes": [0]}], **member}
            await group.ask("OffsetFetch", {"groups": [wanted], "requireStable": True}, version)

    return probe


async def _classic_join(group: Group) -> None:
    member = ClassicMember(group.play, name="n", group=group.group)
    member.topics = (group.play.topic,)
    await member.join()
    await member.sync()
    await member.ask("Heartbeat", {"generationId": member.generation, "memberId": member.member_id}, 4)
    await group.a.heartbeat()
    await member.leave()


async def _describe(group: Group) -> None:
    for version in (0, 1):
        await group.ask("ConsumerGroupDescribe", {"groupIds": [group.group, ""]}, version)
    await group.ask("DescribeGroups", {"groups": [group.group]}, 6)


async def _delete(group: Group) -> None:
    topics = [{"name": group.play.topic, "partitions": [{"partitionIndex": 0}]}]
    await group.ask("OffsetDelete", {"groupId": group.group, "topics": topics})
    await group.ask("DeleteGroups", {"groupsNames": [group.group]}, 2)


HEARTBEATS: Final[dict[str, Probe]] = {
    "empty": _beat(),
    "whole": _beat(whole=True),
    "older": _beat(-1),
    "newer": _beat(1),
    "again": _beat(whole=True, memberEpoch=0),
    "leave": _beat(memberEpoch=LEAVE),
    "leave-for-a-while": _beat(memberEpoch=LEAVE_FOR_A_WHILE),
    "no-such-epoch": _beat(memberEpoch=-3),
    "no-group": _beat(groupId=""),
    "no-member": _beat(memberId=""),
    "owns-nothing": _beat(topicPartitions=[]),
}
JOINS: Final[dict[str, Probe]] = {
    "v0": _join(0),
    "v0-no-member": _join(0, memberId=""),
    "v1": _join(),
    "static": _join(instanceId="one"),
    "other-static": _join(instanceId="two"),
    "no-timeout": _join(rebalanceTimeoutMs=-1),
    "no-topics": _join(subscribedTopicNames=None),
    "empty-topics": _join(subscribedTopicNames=[]),
    "unknown-topic": _join(subscribedTopicNames=["nowhere"]),
    "owns-something": _join(topicPartitions=[{"topicId": "A" * 21 + "Q", "partitions": [0]}]),
    "range": _join(serverAssignor="range"),
    "unknown-assignor": _join(serverAssignor="guess"),
    "bad-pattern": _join(subscribedTopicNames=None, subscribedTopicRegex="("),
    "empty-pattern": _join(subscribedTopicNames=None, subscribedTopicRegex=""),
}
OFFSETS: Final[dict[str, Probe]] = {
    "v9": _commit(),
    "v10": _commit(version=10),
    "older": _commit(-1),
    "newer": _commit(1),
    "unknown": _commit(memberId="stranger"),
    "simple": _commit(memberId="", generationIdOrMemberEpoch=-1),
    "no-member": _commit(memberId=""),
}
REQUESTS: Final[dict[str, dict[str, Probe]]] = {
    "heartbeat": HEARTBEATS,
    "join": JOINS,
    "offsets": OFFSETS,
    "classic": {"join": _classic_join},
    "describe": {"all": _describe},
    "delete": {"all": _delete},
}


def table() -> Iterator[Script]:
    """Each kind of request in each state. A classic member that joins a classic group would have to wait."""
    for kind, probes in REQUESTS.items():
        for name, state in STATES.items():
            if (kind, name) != ("classic", "classic"):
                yield Script(f"{kind}-{name}", _script(state, probes), partitions=3)


def _script(state: State, probes: dict[str, Probe]) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        for name, probe in probes.items():
            group = Group(play, f"{play.group}-{name}")
            await state(group)
            await probe(group)
            await group.ask("ConsumerGroupDescribe", {"groupIds": [group.group]}, 1)

    return run
