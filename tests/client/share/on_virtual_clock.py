"""Share consumers' cores and a coordinator in one process, all on the coordinator's virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from rejoin.client.core.effects import AcknowledgementsCommitted, CallDone, Effect, PollFailed, PollReturned, Send
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import Answered, Closed, Elapsed, Failed, Failure, Polled, Subscribed
from rejoin.client.core.share.core import ShareConsumerCore
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked, ShareInput
from rejoin.client.share_config import ShareConsumerConfig
from rejoin.coordinator.testing import GroupCoordinator, NoAnswer
from rejoin.protocol.message import Response
from rejoin.protocol.types import TopicPartition
from tests.coordinator.testing.share_member import GROUP

ROUNDS: Final = 60
"""Rounds of the event loop after which nothing moves any more, unless time passes."""


class Member:
    """One share consumer."""

    def __init__(self, coordinator: GroupCoordinator, name: str, **settings: Any) -> None:
        config = ShareConsumerConfig(group_id=GROUP, client_id=name, **settings)
        self.core = ShareConsumerCore(
            config,
            lambda: 0.5,
            member_id=name,
            explicit=config.share_acknowledgement_mode == "explicit",
            limit_records=config.share_acquire_mode == "record_limit",
        )
        self._coordinator = coordinator
        self._requests: dict[int, asyncio.Task[Response]] = {}
        self.records: list[ConsumerRecord] = []
        self.errors: list[KafkaError] = []
        self.results: list[Mapping[TopicPartition, KafkaError | None]] = []
        self.is_polling = False
        self.is_down = False

    def step(self, what: ShareInput) -> None:
        for effect in self.core.step(what, self._coordinator.now_ms):
            self._apply(effect)

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Send():
                call = self._coordinator.call(effect.request, effect.version, self.core.config.client_id)
                task = asyncio.ensure_future(call)
                self._requests[effect.request_id] = task
                task.add_done_callback(partial(self._answered, effect.request_id))
            case PollReturned():
                self.is_polling = False
                self.records += [record for part in effect.records or () for record in part]
            case PollFailed():
                self.is_polling = False
                self.errors.append(effect.error)
            case AcknowledgementsCommitted():
                self.results.append(effect.results)
            case CallDone():
                if effect.error is not None:
                    self.errors.append(effect.error)
            case _:
                pass

    def _answered(self, request_id: int, task: asyncio.Task[Response]) -> None:
        if task.cancelled() or self.is_down:
            return
        if isinstance(task.exception(), NoAnswer):
            self.step(Failed(request_id, Failure.DISCONNECT))
        else:
            self.step(Answered(request_id, task.result()))

    def poll(self, timeout_ms: int = 60_000) -> None:
        self.is_polling = True
        self.step(Polled(timeout_ms))

    def acknowledge(self, record: ConsumerRecord, kind: int) -> None:
        self.step(RecordAcknowledged("acknowledge", record.topic, record.partition, record.offset, int(kind)))

    def take(self) -> list[ConsumerRecord]:
        """The records of finished polls since the last time."""
        taken, self.records = self.records, []
        return taken

    def crash(self) -> None:
        """Stop, and send nothing."""
        self.is_down = True
        for task in self._requests.values():
            task.cancel()


class Group:
    """Members that move with one clock."""

    def __init__(self, coordinator: GroupCoordinator, **settings: Any) -> None:
        self.coordinator = coordinator
        self.members: dict[str, Member] = {}
        self._settings = settings

    async def join(self, *names: str) -> list[Member]:
        """Start members that read ``jobs``, and wait until each has partitions."""
        started = [Member(self.coordinator, name, **self._settings) for name in names]
        for member in started:
            self.members[member.core.config.client_id] = member
            member.step(Subscribed(("jobs",)))
            member.poll(0)
        for _ in range(40):
            if all(member.core.assignment() for member in started):
                return started
            await self.run(500)
        raise AssertionError({member.core.config.client_id: member.core.describe() for member in started})

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def run(self, millis: int) -> None:
        """Let time pass, for the coordinator and for the members."""
        until = self.coordinator.now_ms + millis
        await self.settle()
        while self.coordinator.now_ms < until:
            up = [member for member in self.members.values() if not member.is_down]
            due = [at for member in up if (at := member.core.next_deadline()) is not None]
            await self.coordinator.advance(max(1, min([*due, until]) - self.coordinator.now_ms))
            for member in up:
                member.step(Elapsed())
            await self.settle()

    async def poll(self, member: Member, within_ms: int = 2_000) -> list[ConsumerRecord]:
        """Poll until records come, or for a time."""
        member.poll(within_ms)
        await self.run_until_polled(member, within_ms)
        return member.take()

    async def run_until_polled(self, member: Member, within_ms: int) -> None:
        until = self.coordinator.now_ms + within_ms
        await self.settle()
        while member.is_polling and self.coordinator.now_ms < until:
            await self.run(100)
        await self.settle()

    async def commit(self, member: Member) -> Mapping[TopicPartition, KafkaError | None]:
        """Commit, and wait for the results."""
        member.step(ShareCommitAsked("commit"))
        for _ in range(20):
            await self.settle()
            if member.results:
                return member.results.pop()
            await self.run(100)
        raise AssertionError("the commit has no result")

    async def close(self, member: Member) -> None:
        member.step(Closed("close"))
        for _ in range(20):
            await self.settle()
            if member.core.closed:
                return
            await self.run(100)
        raise AssertionError("the member does not close")
