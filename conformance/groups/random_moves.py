"""Random migrations: consumers of one group that restart with the other protocol, there and back, and commit meanwhile.

Each script has three phases; a consumer that starts mostly runs with the protocol of the phase.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from conformance.groups.consumers import COOPERATIVE, ClassicConsumer, Consumer, ModernConsumer
from conformance.player.random_play import RandomPlay, random_script
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script, ScriptFailed

PHASE_LENGTH: Final = 15
PARTITIONS: Final = 5
MORE_PARTITIONS: Final = 3
FAITHFUL: Final = 0.85
"""How often a consumer runs with the protocol of its phase."""

THERE: Final = ("classic", "consumer", "classic")
BACK: Final = ("consumer", "classic", "consumer")
PHASES: Final = {
    "bidirectional": (THERE, THERE, BACK, ("classic", "both", "consumer")),
    "upgrade": (THERE, BACK),
    "downgrade": (THERE, BACK, BACK),
    "disabled": (THERE, BACK),
}
"""By policy."""
OFFERED: Final = ((("range",), ("range", COOPERATIVE)), ((COOPERATIVE,), (COOPERATIVE, "range")))
"""Protocols of a script's classic members: eager ones, or cooperative ones."""
DRAIN_ROUNDS: Final = 40

Operation: TypeAlias = Callable[[], Awaitable[Any]]


class Application:
    """A place in the group: one consumer at a time, with an instance id if it is static."""

    def __init__(self, name: str, instance_id: str | None, topics: tuple[str, ...]) -> None:
        self.name, self.instance_id, self.topics = name, instance_id, topics
        self.incarnations = 0
        self.consumer: Consumer | None = None

    @property
    def running(self) -> Consumer | None:
        """Its consumer, if it runs."""
        return None if self.consumer is None or self.consumer.has_ended else self.consumer


class Moves(RandomPlay):
    """One random sequence: three phases, each with a protocol."""

    length = 3

    def __init__(self, play: Play, policy: str) -> None:
        super().__init__(play)
        self._phases = iter(self.draw.choice(PHASES[policy]))
        names = [play.topic, *play.script.more_topics]
        wanted = [tuple(names), tuple(names), (play.topic,)]
        self._offered = self.draw.choice(OFFERED)
        self._applications = [
            Application(name, f"i-{name}" if name in "st" else None, self.draw.choice(wanted)) for name in "abcst"
        ]
        self._offset = 0

    async def step(self) -> None:
        """The next phase."""
        protocol = next(self._phases)
        for _ in range(PHASE_LENGTH):
            await self._operate(protocol)
        await self._look()

    async def end(self) -> None:
        """Let all leave, so that nothing is parked any more."""
        await self._drain()
        await self._look()

    async def _operate(self, protocol: str) -> None:
        free = [each for each in self._applications if each.running is None or not each.running.is_waiting]
        if not free:
            # A static member's place is taken by a consumer that has ended: who is parked waits for its timeout.
            await self.play.wait(100)
            return
        application = self.draw.choice(free)
        consumer = application.running
        if consumer is None:
            await self._start(application, protocol)
        else:
            await self.pick(self._table(application, consumer, protocol))()

    def _table(self, application: Application, consumer: Consumer, protocol: str) -> list[tuple[Operation, int]]:
        return [
            (consumer.proceed, 48),
            (lambda: self._restart(application, consumer, protocol), 6 if runs(consumer, protocol) else 24),
            (lambda: self._close(consumer), 4),
            (lambda: self._commit(consumer), 9),
            (lambda: self._commit(consumer, -1), 2),
            (lambda: self._fetch(consumer), 5),
            (self._look, 5),
            (lambda: self._as_the_other(consumer), 4),
            (lambda: self._with_older_epoch(consumer), 3),
            (self._delete, 1),
        ]

    async def _start(self, application: Application, protocol: str) -> None:
        """Join with the protocol of the phase, or sometimes with the other."""
        application.incarnations += 1
        kinds = ["classic", "consumer"]
        wanted = protocol if protocol in kinds and self.draw.random() < FAITHFUL else self.draw.choice(kinds)
        name, instance_id = application.name, application.instance_id
        consumer: Consumer
        if wanted == "classic":
            offered = self.draw.choice(self._offered)
            consumer = ClassicConsumer(self.play, self.play.group, name, instance_id, offered)
        else:
            consumer = ModernConsumer(self.play, self.play.group, name, instance_id, application.incarnations)
        consumer.topics = application.topics
        application.consumer = consumer
        await consumer.proceed()

    async def _restart(self, application: Application, consumer: Consumer, protocol: str) -> None:
        await self._close(consumer)
        await self._start(application, protocol)

    async def _close(self, consumer: Consumer) -> None:
        await consumer.leave(is_silent=self.draw.random() < 0.7 and consumer.instance_id is not None)

    # --- offsets

    async def _commit(self, consumer: Consumer, behind: int = 0) -> None:
        """Commit for what it owns, or for a partition that it may not own."""
        self._offset += 1
        owned = consumer.owned or ((self.play.topic, self.draw.randrange(PARTITIONS)),)
        topics: dict[str, list[Json]] = {}
        for topic, index in owned:
            partition = {"partitionIndex": index, "committedOffset": self._offset, "committedMetadata": consumer.name}
            topics.setdefault(topic, []).append(partition)
        body = {
            "groupId": consumer.group,
            "generationIdOrMemberEpoch": consumer.epoch + behind,
            "memberId": consumer.member_id,
            "groupInstanceId": consumer.instance_id,
            "topics": [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()],
        }
        await self.play.ask(consumer.name, "OffsetCommit", body, 9)

    async def _fetch(self, consumer: Consumer) -> None:
        """Look up offsets as a member that owns partitions does."""
        member = {"memberId": consumer.member_id, "memberEpoch": consumer.epoch}
        await self._offsets(consumer.name, member)

    async def _offsets(self, client: str, member: Json) -> None:
        counts = {self.play.topic: PARTITIONS} | self.play.script.more_topics
        topics = [{"name": name, "partitionIndexes": list(range(count))} for name, count in counts.items()]
        group = {"groupId": self.play.group, "topics": topics, **member}
        await self.play.ask(client, "OffsetFetch", {"groups": [group], "requireStable": True}, 9)

    # --- what clients do by mistake

    async def _as_the_other(self, consumer: Consumer) -> None:
        """A request of the other protocol with the id of this member."""
        own, epoch = {"memberId": consumer.member_id}, consumer.epoch
        requests: list[tuple[str, int, Json]] = [
            ("Heartbeat", 4, {"generationId": epoch, **own}),
            ("SyncGroup", 4, {"generationId": epoch, **own, "assignments": []}),
            ("ConsumerGroupHeartbeat", 1, {"memberEpoch": epoch, **own}),
            ("ConsumerGroupHeartbeat", 1, {"memberEpoch": -1, **own}),
            ("LeaveGroup", 5, {"members": [own]}),
        ]
        api, version, body = self.draw.choice(requests)
        # The SyncGroup of a classic member may be parked.
        if consumer.member_id and not (api == "SyncGroup" and isinstance(consumer, ClassicConsumer)):
            await self.play.ask(consumer.name, api, {"groupId": consumer.group} | body, version)

    async def _with_older_epoch(self, consumer: Consumer) -> None:
        if isinstance(consumer, ClassicConsumer):
            await consumer.beat(consumer.generation - 1)
        else:
            owned = self.draw.choice([None, consumer.assigned, []])
            body = {"memberEpoch": max(0, consumer.epoch - 1), "topicPartitions": owned}
            await consumer.ask(
                "ConsumerGroupHeartbeat",
                {"groupId": consumer.group, "memberId": consumer.member_id, "instanceId": consumer.instance_id} | body,
                1,
            )

    # --- admin

    async def _look(self) -> None:
        group = self.play.group
        await self.play.ask("admin", "ConsumerGroupDescribe", {"groupIds": [group]}, 1)
        await self.play.ask("admin", "DescribeGroups", {"groups": [group]}, self.draw.choice((5, 6)))
        await self._offsets("admin", {})

    async def _delete(self) -> None:
        topics = [{"name": self.play.topic, "partitions": [{"partitionIndex": self.draw.randrange(PARTITIONS)}]}]
        await self.play.ask("admin", "OffsetDelete", {"groupId": self.play.group, "topics": topics})
        await self.play.ask("admin", "DeleteGroups", {"groupsNames": [self.play.group]}, 2)

    async def _drain(self) -> None:
        """Let all leave, and those that were parked after them."""
        for _ in range(DRAIN_ROUNDS):
            for application in self._applications:
                consumer = application.running
                if consumer is not None and not consumer.is_waiting:
                    await consumer.leave()
            if not any(application.running for application in self._applications):
                return
            await asyncio.sleep(0.25)
        raise ScriptFailed(f"{self.play.script.name}: a request is parked for ever")


def runs(consumer: Consumer, protocol: str) -> bool:
    """Whether a consumer runs with the protocol of the phase."""
    return protocol not in ("classic", "consumer") or isinstance(consumer, ClassicConsumer) is (protocol == "classic")


def random_moves(policy: str, count: int, first: int = 1) -> Iterator[Script]:
    """Scripts by seed, for a broker with a migration policy."""
    for number in range(first, first + count):
        name = f"{policy}-{number:03}"
        more = {f"more-{name}": MORE_PARTITIONS} if number % 3 == 0 else {}
        make = partial(Moves, policy=policy)
        yield random_script(name, make, partitions=PARTITIONS, more_topics=more, keeps_ids=True)
