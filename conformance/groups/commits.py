"""Offsets of groups with members, committed within transactions (KIP-447), and what becomes of groups meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from conformance.groups.classic_member import ClassicMember
from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

CLAIMS: Final[dict[str, Callable[[ClassicMember], Json]]] = {
    "right": lambda member: member.identity,
    "no-member": lambda member: {},
    "older-generation": lambda member: member.identity | {"generationIdOrMemberEpoch": member.generation - 1},
    "newer-generation": lambda member: member.identity | {"generationIdOrMemberEpoch": member.generation + 1},
    "no-generation": lambda member: member.identity | {"generationIdOrMemberEpoch": -1},
    "no-id": lambda member: member.identity | {"memberId": ""},
    "other-id": lambda member: member.identity | {"memberId": "stranger"},
    "other-instance": lambda member: member.identity | {"groupInstanceId": "other"},
    "no-instance": lambda member: member.identity | {"groupInstanceId": None},
    "instance-of-another-id": lambda member: member.identity | {"memberId": "stranger", "groupInstanceId": "one"},
}
"""Fields about the consumer in a producer's TxnOffsetCommit."""


async def _joined(member: ClassicMember) -> None:
    await member.join()


async def _stable(member: ClassicMember) -> None:
    await member.join()
    await member.sync()


async def _second_generation(member: ClassicMember) -> None:
    await _stable(member)
    await member.join()
    await member.sync()


async def _left(member: ClassicMember) -> None:
    await _stable(member)
    await member.leave()


GROUPS: Final[dict[str, Callable[[ClassicMember], Awaitable[None]]]] = {
    "completing": _joined,
    "stable": _stable,
    "second-generation": _second_generation,
    "left": _left,
}


def _commits(state: str, instance_id: str | None) -> Script:
    async def run(play: Play) -> None:
        looks, member = Looks(play), ClassicMember(play, instance_id)
        await GROUPS[state](member)
        for number, (name, claim) in enumerate(CLAIMS.items()):
            for version in (3, 4, 5, 6):
                producer = Producer(play, transactional_id=f"{play.transactional_id}-{name}-{version}")
                await producer.init()
                if version < 5:
                    await producer.add_offsets()
                await producer.offsets({number: 10 + version}, version, **claim(member))
                await producer.end(version % 2 == 0)
        await looks.offsets(*range(len(CLAIMS)), stable=True)
        await looks.ask("DescribeGroups", {"groups": [play.group]}, 5)

    kind = "static" if instance_id else "dynamic"
    return Script(f"commits-for-a-{kind}-member-{state}", run, partitions=len(CLAIMS))


async def _mixed_with_commits(play: Play) -> None:
    """Commits of a member beside those of two transactions: the later ones in the log count."""
    looks, member = Looks(play), ClassicMember(play)
    await _stable(member)
    p = Producer(play, "p", f"{play.transactional_id}-p")
    q = Producer(play, "q", f"{play.transactional_id}-q")
    await p.init()
    await q.init()

    async def commit(offset: int) -> None:
        partitions = [{"partitionIndex": 0, "committedOffset": offset, "committedMetadata": f"m{offset}"}]
        topics = [{"name": play.topic, "partitions": partitions}]
        await member.ask("OffsetCommit", member.identity | {"topics": topics}, 9)

    await p.offsets({0: 1})
    await commit(2)
    await q.offsets({0: 3})
    await looks.offsets(stable=True)
    await looks.both_offsets()
    await p.offsets({0: 4})
    await q.commit()
    await looks.both_offsets()
    await commit(5)
    await p.commit()
    await looks.both_offsets()
    await p.offsets({0: 6, 1: 7})
    await p.abort()
    await looks.both_offsets()
    await looks.offsets(stable=True)


async def _group_deleted(play: Play) -> None:
    """A group with pending offsets alone, with some of each, and with none, is deleted; the producer goes on."""
    looks = Looks(play)
    producer = Producer(play)
    await producer.init()
    for partition in (0, 1):
        await producer.offsets({partition: 5})
        await looks.ask("DescribeGroups", {"groups": [play.group]}, 5)
        await looks.ask("ListGroups", {"statesFilter": ["Nothing"]}, 4)
        await looks.ask("DeleteGroups", {"groupsNames": [play.group]}, 2)
        await looks.both_offsets()
        await producer.commit()
        await looks.both_offsets()
        await looks.ask("DescribeGroups", {"groups": [play.group]}, 5)
    await producer.offsets({0: 8})
    topics = [{"name": play.topic, "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}]}]
    await looks.ask("OffsetDelete", {"groupId": play.group, "topics": topics})
    await looks.both_offsets()
    await producer.offsets({1: 9})
    await producer.commit()
    await looks.both_offsets()
    await looks.ask("DeleteGroups", {"groupsNames": [play.group, "nothing"]}, 3)
    await looks.both_offsets()


async def _stable_fetches(play: Play) -> None:
    """Each version of OffsetFetch, of some partitions and of all, while offsets are pending."""
    looks, producer = Looks(play), Producer(play)
    await producer.init()
    await producer.offsets({0: 1})
    await producer.commit()
    await producer.offsets({0: 2, 1: 3})
    for version in range(1, 10):
        await looks.offsets(0, 1, version=version)
        if version >= 2:
            await looks.offsets(version=version)
        if version >= 7:
            await looks.offsets(0, 1, version=version, stable=True)
            await looks.offsets(version=version, stable=True)
    await producer.abort()
    await looks.both_offsets()


async def _zombie_of_a_group(play: Play) -> None:
    """The consumer of a producer has left its group: the transaction aborts, and the next owner goes on."""
    looks, first = Looks(play), ClassicMember(play, name="m")
    await _stable(first)
    p = Producer(play, "p", f"{play.transactional_id}-p")
    await p.init()
    await p.produce(0)
    await first.leave()
    second = ClassicMember(play, name="n")
    await _stable(second)
    await p.offsets({0: 5}, **first.identity)
    await looks.both_offsets()
    await p.abort()
    q = Producer(play, "q", f"{play.transactional_id}-q")
    await q.init()
    await q.produce(0)
    await q.offsets({0: 5}, **second.identity)
    await q.commit()
    await looks.both_offsets()
    await looks.fetch(0, isolation=1)


def groups() -> Iterator[Script]:
    for state in GROUPS:
        yield _commits(state, None)
        yield _commits(state, "one")
    yield Script("offsets-of-members-and-of-transactions", _mixed_with_commits)
    yield Script("a-group-with-pending-offsets-is-deleted", _group_deleted)
    yield Script("offsets-in-every-version", _stable_fetches)
    yield Script("the-consumer-of-a-producer-has-left", _zombie_of_a_group)
