"""The broker on which one trouble is played, with a second member that can join the client's group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rejoin.conform.clients.observed import ClientLife, is_accepted, only
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.types import TopicPartition

TOPIC: Final = "conform-topic"
OUTPUT_TOPIC: Final = "conform-output"
TRANSACTIONAL_ID: Final = "conform-transactions"
GROUP: Final = "conform-group"
PARTITIONS: Final = 4
OTHER: Final = "rejoin-conform-other"
"""Client id of the second member, whose requests are not judged."""

LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class PlayedNames:
    """The names of one trouble; a broker of its own has no others."""

    topic: str = TOPIC
    output_topic: str = OUTPUT_TOPIC
    group: str = GROUP
    transactional_id: str = TRANSACTIONAL_ID

    @classmethod
    def of(cls, prefix: str) -> PlayedNames:
        """Names that no other trouble on the same cluster has."""
        return cls(f"{prefix}-topic", f"{prefix}-output", f"{prefix}-group", f"{prefix}-transactions")


class JudgingBroker(Protocol):
    """A broker on which troubles are played: one of ours, or a cluster behind a proxy."""

    @property
    def bootstrap_servers(self) -> str:
        """The address for the client."""

    @property
    def add_fault(self) -> Any:
        """Make a fault."""

    @property
    def requests(self) -> Any:
        """The requests that have come."""

    @property
    def mark(self) -> Any:
        """The current mark."""

    @property
    def transcript(self) -> Any:
        """The client's life as text."""

    @property
    def group(self) -> Any:
        """A group as it is now."""

    @property
    def kick(self) -> Any:
        """Remove a member."""

    @property
    def call(self) -> Any:
        """Ask something as another client."""

    @property
    def produce(self) -> Any:
        """Write records."""

    @property
    def set_topic(self) -> Any:
        """Add partitions."""

    @property
    def resign(self) -> Any:
        """Lead a group no more."""

    @property
    def elect(self) -> Any:
        """Lead it again."""

    @property
    def brokers(self) -> Any:
        """The brokers that can be stopped."""

    @property
    def stop_broker(self) -> Any:
        """Be away."""

    @property
    def start_broker(self) -> Any:
        """Be there again."""


@dataclass(frozen=True)
class TimeLimits:
    """Longest waits in seconds: for the client's start, for a trouble to meet it, for its reaction, and for its end.

    Then the lengths of what is done: how long brokers are away, how long a rebalance is held up, and how long a client
    is watched for what it must not do.
    """

    start: float = 30.0
    meeting: float = 15.0
    reaction: float = 30.0
    closing: float = 10.0
    away: float = 3.0
    held: float = 6.0
    watched: float = 3.0


class ClientProgram(Protocol):
    """A client that was started."""

    @property
    def problem(self) -> str | None:
        """Why it runs no longer, or should not; None while it runs."""

    @property
    def processed(self) -> Sequence[tuple[TopicPartition, int]]:
        """Records that it says it has processed, by partition and offset."""

    async def close(self, seconds: float) -> bool:
        """Ask it to end; whether it ended by itself within these seconds."""

    async def kill(self) -> None:
        """End it, and all that it started."""


class TroubleStage:
    """A broker, and the client on it."""

    def __init__(self, coordinator: JudgingBroker, limits: TimeLimits, names: PlayedNames | None = None) -> None:
        self.coordinator = coordinator
        self.names = names or PlayedNames()
        self.limits = limits
        self.program: ClientProgram | None = None
        self.since = 0
        self.asked_to_end = False
        self.closed = False
        self.hangs = False

    async def life(self) -> ClientLife:
        """Requests of the client up to now."""
        found = [each for each in await self.coordinator.requests() if each.client_id != OTHER]
        seen = () if self.program is None else self.program.processed
        mine = self.names.topic
        processed = tuple((place._replace(topic=TOPIC) if place.topic == mine else place, at) for place, at in seen)
        return ClientLife(tuple(found), self.since, self.closed, self.hangs, processed)

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
            await asyncio.sleep(LOOK_SECONDS)

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
