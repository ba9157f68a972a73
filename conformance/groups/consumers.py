"""Consumers that run with either protocol, and may come back with the other: what the random migrations are made of.

A JoinGroup or SyncGroup that the coordinator parks is waited for in the background, while others go on.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeAlias

from conformance.groups.members import LEAVE, LEAVE_FOR_A_WHILE, Member
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.protocol.embedded.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_partitions,
    encode_subscription,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

PARKED_SECONDS: Final = 0.2
"""A request that is not answered within this is taken for parked."""

COOPERATIVE: Final = "cooperative-sticky"
EAGER_TIMEOUT_MS: Final = 5_000
SESSION_TIMEOUT_MS: Final = 30_000

JOINS_AGAIN: Final = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}
REJOINS: Final = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
"""Errors after which a member of the consumer protocol joins with epoch 0."""


class ClassicConsumer:
    """A member of the classic protocol, with the protocols that it offers, and what it was assigned."""

    def __init__(
        self, play: Play, group: str, name: str, instance_id: str | None, protocols: tuple[str, ...] = ("range",)
    ) -> None:
        self.play, self.group, self.name, self.instance_id = play, group, name, instance_id
        self.protocols = protocols
        self.topics: tuple[str, ...] = (play.topic,)
        self.rebalance_timeout_ms = EAGER_TIMEOUT_MS
        self.session_timeout_ms = SESSION_TIMEOUT_MS
        self.user_data: bytes | None = None
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[TopicPartition, ...] = ()
        self.has_ended = False
        self._protocol = ""
        self._is_joined = self._is_synced = False
        self._led: list[Json] = []
        self._parked: asyncio.Task[None] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it is parked."""
        return self._parked is not None and not self._parked.done()

    @property
    def epoch(self) -> int:
        """The generation, with which it commits."""
        return self.generation

    async def ask(self, api: str, body: Json, version: int) -> Any:
        return await self.play.ask(self.name, api, {"groupId": self.group} | body, version)

    async def proceed(self) -> None:
        """Do what a consumer does next: join, sync, or a heartbeat."""
        if not self._is_joined:
            await self.join()
        elif not self._is_synced:
            await self.sync()
        else:
            await self.beat()

    async def join(self) -> None:
        """Join, and wait for the answer unless it is parked."""
        self._is_joined = self._is_synced = False
        await self._in_background(self._join())

    async def sync(self) -> None:
        """Sync, as the leader with assignments for all, and wait for the answer unless it is parked."""
        await self._in_background(self._sync())

    async def _in_background(self, asking: Coroutine[Any, Any, None]) -> None:
        self._parked = asyncio.create_task(asking)
        await asyncio.wait({self._parked}, timeout=PARKED_SECONDS)
        if not self._parked.done():
            # A broker that is slow takes as long over this.
            await self.play.unrecorded("DescribeGroups", {"groups": [self.group]}, 0)
            await asyncio.wait({self._parked}, timeout=PARKED_SECONDS / 4)
        if self._parked.done():
            await self._parked

    async def _join(self) -> None:
        is_cooperative = COOPERATIVE in self.protocols[:1]
        self.owned = self.owned if is_cooperative else ()
        subscription = Subscription(self.topics, self.user_data, self.owned, self.generation)
        metadata = base64.b64encode(encode_subscription(subscription)).decode()
        body = {
            "sessionTimeoutMs": self.session_timeout_ms,
            "rebalanceTimeoutMs": self.rebalance_timeout_ms,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "protocolType": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name in self.protocols],
        }
        answer = await self.ask("JoinGroup", body, 9)
        if answer["errorCode"] == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer["memberId"]
            answer = await self.ask("JoinGroup", body | {"memberId": self.member_id}, 9)
        if self._succeeded(answer):
            self.member_id, self.generation = answer["memberId"], answer["generationId"]
            self._protocol, self._led = answer["protocolName"], answer["members"]
            self._is_joined = True

    async def _sync(self) -> None:
        body = {
            "generationId": self.generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "protocolType": "consumer",
            "protocolName": self._protocol,
            "assignments": self._assignments(),
        }
        answer = await self.ask("SyncGroup", body, 5)
        if self._succeeded(answer):
            self._is_synced = True
            before, data = self.owned, base64.b64decode(answer["assignment"])
            self.owned = decode_assignment(data).partitions if data else ()
            if self._protocol == COOPERATIVE and set(before) - set(self.owned):
                # What it has given up goes to others in the next generation.
                self._is_joined = False

    def _assignments(self) -> list[Json]:
        """Partitions in turn; a cooperative leader gives none that another member still owns."""
        subscriptions = {
            each["memberId"]: decode_subscription(base64.b64decode(each["metadata"])) for each in self._led
        }
        given = assign(subscriptions, self._partitions(), is_cooperative=self._protocol == COOPERATIVE)
        return [
            {"memberId": member_id, "assignment": base64.b64encode(encode_partitions(given[member_id])).decode()}
            for member_id in given
        ]

    def _partitions(self) -> list[TopicPartition]:
        counts = {self.play.topic: self.play.script.partitions} | self.play.script.more_topics
        return [TopicPartition(topic, index) for topic, count in counts.items() for index in range(count)]

    async def beat(self, generation: int | None = None) -> None:
        body = {
            "generationId": self.generation if generation is None else generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
        }
        answer = await self.ask("Heartbeat", body, 4)
        if generation is None:
            self._succeeded(answer)

    async def leave(self, *, is_silent: bool = False) -> None:
        """Leave the group. ``is_silent`` ends a static member with no request."""
        self.has_ended = True
        if not is_silent and (self.member_id or self.instance_id):
            members = [{"memberId": self.member_id, "groupInstanceId": self.instance_id, "reason": "closes"}]
            await self.ask("LeaveGroup", {"members": members}, 5)

    def _succeeded(self, answer: Json) -> bool:
        """Take in the error of an answer, if it is one."""
        error = ErrorCode(answer["errorCode"])
        if error is ErrorCode.NONE:
            return True
        self._is_joined = self._is_synced = False
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation, self.owned = "", -1, ()
        elif error not in JOINS_AGAIN:
            self.has_ended = True
        return False


def assign(
    subscriptions: Mapping[str, Subscription], partitions: Iterable[TopicPartition], *, is_cooperative: bool
) -> dict[str, list[TopicPartition]]:
    """Each partition to the next of the members that want its topic, in order of their ids."""
    owners = {each: member_id for member_id, said in subscriptions.items() for each in said.owned_partitions}
    given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted(subscriptions)}
    for number, partition in enumerate(partitions):
        wanting = [member_id for member_id in given if partition.topic in subscriptions[member_id].topics]
        if wanting:
            chosen = wanting[number % len(wanting)]
            if not is_cooperative or owners.get(partition, chosen) == chosen:
                given[chosen].append(partition)
    return given


class ModernConsumer(Member):
    """A member of the consumer protocol that acknowledges what it was given."""

    is_waiting = False

    def __init__(self, play: Play, group: str, name: str, instance_id: str | None, incarnation: int = 1) -> None:
        super().__init__(play, group, name, instance_id)
        self.member_id = f"{name}-{incarnation}-of-{group}"
        self.topics: tuple[str, ...] = (play.topic,)
        self.has_ended = False
        self._acknowledged: list[Json] = []

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """Assigned partitions, by name of the topic."""
        names = {identity: name for name, identity in self.play.topic_ids.items()}
        return tuple(
            TopicPartition(names[each["topicId"]], index) for each in self.assigned for index in each["partitions"]
        )

    async def proceed(self) -> None:
        """Do what a consumer does next: join, acknowledge, or a heartbeat."""
        if self.epoch <= 0:
            self.assigned, self._acknowledged = [], []
            answer = await self.join(subscribedTopicNames=list(self.topics), instanceId=self.instance_id)
        elif self.assigned != self._acknowledged:
            self._acknowledged = self.assigned
            answer = await self.heartbeat(instanceId=self.instance_id, topicPartitions=self.assigned)
        else:
            answer = await self.heartbeat(instanceId=self.instance_id)
        error = ErrorCode(answer["errorCode"])
        if error in REJOINS:
            self.epoch = 0
        elif error is not ErrorCode.NONE:
            self.has_ended = True

    async def leave(self, epoch: int = LEAVE, *, is_silent: bool = False) -> None:
        """Leave the group. ``is_silent`` says of a static member that it comes back."""
        self.has_ended = True
        if self.epoch > 0:
            epoch = LEAVE_FOR_A_WHILE if is_silent and self.instance_id is not None else epoch
            await self.heartbeat(instanceId=self.instance_id, memberEpoch=epoch)


Consumer: TypeAlias = ClassicConsumer | ModernConsumer
