"""A coordinator's core and any number of consumers' cores in one process: no network, no latency, a virtual clock.

    group = Harness(topics={"t": 6})
    a = group.consumer("a")
    group.run(5_000)
    group.assignments()      # {"a": [0, 1, 2, 3, 4, 5]}

A consumer polls again as soon as its poll returns, or ``processing_ms`` later if that gave it records.
Everything is deterministic.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from rejoin.client.assignors import assignor_named
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import (
    CallDone,
    CallListener,
    Cancel,
    CommitDone,
    OffsetsFound,
    PollReturned,
    Raised,
    Send,
)
from rejoin.client.core.inputs import (
    Answered,
    CallbackDone,
    Closed,
    Elapsed,
    Failed,
    Failure,
    Polled,
    RecordRange,
    Subscribed,
)
from rejoin.client.core.inputs import Input as ConsumerInput
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, ReadLog, Reply
from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Context, Elected, LogRead, Received, Resigned, Stored
from rejoin.coordinator.core.inputs import Elapsed as NodeElapsed
from rejoin.coordinator.core.inputs import Input as NodeInput
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.base import Event
from rejoin.protocol.message import Response
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import Record, offsets_partition
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.types import TopicPartition

START = 1_700_000_000_000
POLL_MS = 1_000


class Member:
    """One consumer, its user and what became of it. ``calls`` are the listener's; ``alive`` false: it was killed."""

    def __init__(self, harness: Harness, name: str, processing_ms: int, settings: dict[str, Any]) -> None:
        self.harness = harness
        self.name = name
        self.processing_ms = processing_ms
        assignors = settings.pop("assignors", ("range",))
        self.config = ConsumerConfig(client_id=name, **settings)
        seed = random.Random(f"harness/{name}")
        self.core = ConsumerCore(self.config, [assignor_named(each) for each in assignors], seed.random)
        self.alive = True
        self.stopped_until = 0
        self.calls: list[str] = []
        self.sent: list[str] = []
        self.raised: list[Exception] = []
        self.processed: list[RecordRange] = []
        self.events: list[Event] = []
        self.open: dict[int, str] = {}

    def owned(self, topic: str = "t") -> list[int]:
        return [partition for name, partition in self.core.assignment() if name == topic]


class Harness:
    """A node, its log in memory, and consumers."""

    def __init__(
        self, *, topics: Mapping[str, int] | None = None, records_per_second: float = 0, **settings: Any
    ) -> None:
        self.now = START
        ids = itertools.count(1)
        self.settings = Settings(**settings)
        self._new_id: Callable[[], str] = lambda: f"{next(ids):032x}"
        self.node = Node(self.settings, self._new_id)
        self.members: dict[str, Member] = {}
        self.events: list[Event] = []
        self._queue: deque[Callable[[], None]] = deque()
        self._draining = False
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._logs: dict[int, list[Record]] = {}
        self._epoch = 0
        self.down = False
        self._elect()
        for name, partitions in (topics if topics is not None else {"t": 6}).items():
            self.create(name, partitions, records_per_second)

    # -- the node

    def _elect(self) -> None:
        partitions = [offsets_partition(index) for index in range(self.settings.offsets_topic_num_partitions)]
        self._to_node(ClusterSeen((Broker(1, "node-1", 9095),), dict.fromkeys(partitions, 1)))
        for partition in partitions:
            self._to_node(Elected(partition, self._epoch))

    def fail_over(self, down_ms: int = 0) -> None:
        """The node loses everything it holds in memory; another one takes over after ``down_ms``."""
        for partition in range(self.settings.offsets_topic_num_partitions):
            self._to_node(Resigned(offsets_partition(partition)))
        self.down = True
        self._epoch += 1

        def up() -> None:
            self.down = False
            self._elect()

        self.at(self.now + down_ms, up)

    def create(self, name: str, partitions: int, records_per_second: float = 0) -> None:
        rate = CreatableTopicConfig(name="emulator.records.per.second", value=str(records_per_second))
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=(rate,)
        )
        self.ask(CreateTopicsRequest(topics=(topic,)))

    def grow(self, name: str, partitions: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        self.ask(CreatePartitionsRequest(topics=(topic,), timeout_ms=1_000, validate_only=False))

    def ask(self, request: Any) -> Response:
        """Ask the node something outside of any consumer."""
        answers: list[Response] = []
        version = BY_REQUEST[type(request)].max_version
        self._to_node(Received(answers.append, request, Context(version, "test", "/127.0.0.1")))
        self._drain()
        assert answers, f"{request!r} was not answered at once"
        return answers[0]

    def _to_node(self, what: NodeInput) -> None:
        for effect in self.node.step(what, self.now):
            match effect:
                case Reply():
                    assert callable(effect.token)
                    self._later(effect.token, effect.response)
                case Append():
                    self._logs.setdefault(effect.partition, []).extend(effect.records)
                    stored = Stored(effect.partition, effect.epoch, effect.append_id)
                    self._later(self._to_node, stored)
                case ReadLog():
                    records = tuple(self._logs.get(effect.partition, ()))
                    self._later(self._to_node, LogRead(effect.partition, effect.epoch, records, True))
                case Event():
                    self.events.append(effect)

    def state(self, group_id: str = "g") -> str:
        view = self.node.describe_group(group_id, self.now)
        return "" if view is None else view.state

    def generation(self, group_id: str = "g") -> int:
        view = self.node.describe_group(group_id, self.now)
        assert view is not None, f"there is no group {group_id}"
        return view.generation

    # -- consumers

    def consumer(self, name: str, *topics: str, processing_ms: int = 0, **settings: Any) -> Member:
        """A consumer that subscribes and polls from now on."""
        settings.setdefault("group_id", "g")
        settings.setdefault("auto_offset_reset", "earliest")
        member = self.members[name] = Member(self, name, processing_ms, settings)
        self._to_member(member, Subscribed(topics or ("t",)))
        self._poll(member)
        self._drain()
        return member

    def kill(self, name: str) -> None:
        """As kill -9 does."""
        self.members[name].alive = False

    def stop(self, name: str, ms: int) -> None:
        """As SIGSTOP, and SIGCONT after ``ms``: nothing is done meanwhile, then everything at once."""
        member = self.members[name]
        member.stopped_until = self.now + ms

    def close(self, name: str) -> None:
        self._to_member(self.members[name], Closed())
        self._drain()

    def do(self, name: str, what: ConsumerInput) -> None:
        self._to_member(self.members[name], what)
        self._drain()

    def assignments(self, topic: str = "t") -> dict[str, list[int]]:
        return {name: member.owned(topic) for name, member in self.members.items() if member.alive}

    def _poll(self, member: Member) -> None:
        if not member.core.closed and not member.core.polling:
            self._to_member(member, Polled(POLL_MS))

    def _to_member(self, member: Member, what: ConsumerInput) -> None:
        if not member.alive:
            return
        if self.now < member.stopped_until:
            self.at(member.stopped_until, lambda: self._to_member(member, what))
            return
        for effect in member.core.step(what, self.now):
            match effect:
                case Send():
                    self._send(member, effect)
                case Cancel():
                    member.open.pop(effect.request_id, None)
                case CallListener():
                    partitions = " ".join(f"{topic}-{partition}" for topic, partition in effect.partitions)
                    member.calls.append(f"{effect.kind} [{partitions}]")
                    self._later(self._to_member, member, CallbackDone())
                case PollReturned():
                    member.processed.extend(effect.ranges)
                    self._again(member, member.processing_ms if effect.ranges else 0)
                case Raised():
                    member.raised.append(effect.error)
                    self._again(member, 0)
                case CommitDone() | CallDone() | OffsetsFound():
                    pass
                case Event():
                    member.events.append(effect)
        deadline = member.core.next_deadline()
        if deadline is not None:
            self.at(max(deadline, self.now + (1 if deadline <= self.now else 0)), lambda: self._ring(member))

    def _again(self, member: Member, after_ms: int) -> None:
        if not member.core.closed:
            self.at(self.now + max(1, after_ms), lambda: self._poll(member))

    def _ring(self, member: Member) -> None:
        deadline = member.core.next_deadline()
        if deadline is not None and deadline <= self.now:
            self._to_member(member, Elapsed())

    def _send(self, member: Member, send: Send) -> None:
        api = BY_REQUEST[type(send.request)]
        send.request.check_version(send.version)
        member.sent.append(api.name)
        member.open[send.request_id] = api.name
        if self.down:
            self._later(self._failed, member, send.request_id)
            return

        def answered(response: Response) -> None:
            if member.open.pop(send.request_id, None) is not None:
                self._to_member(member, Answered(send.request_id, response))

        received = Received(answered, send.request, Context(send.version, member.name, "/127.0.0.1"))
        self._later(self._to_node, received)
        self.at(self.now + send.timeout_ms, lambda: self._failed(member, send.request_id, Failure.TIMEOUT))

    def _failed(self, member: Member, request_id: int, failure: Failure = Failure.DISCONNECT) -> None:
        if member.open.pop(request_id, None) is not None:
            self._to_member(member, Failed(request_id, failure))

    # -- time

    def at(self, when: int, call: Callable[[], None]) -> None:
        heappush(self._timers, (when, next(self._count), call))

    def _later(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._queue.append(lambda: call(*arguments))

    def _drain(self) -> None:
        while self._queue:
            self._queue.popleft()()

    def run(self, ms: int) -> None:
        """Let so much time pass."""
        end = self.now + ms
        self._drain()
        while True:
            node_at = self.node.next_deadline()
            timer_at = self._timers[0][0] if self._timers else None
            due = [at for at in (node_at, timer_at) if at is not None and at <= end]
            if not due:
                break
            self.now = max(self.now, min(due))
            # What arrives by a deadline goes before it.
            while self._timers and self._timers[0][0] <= self.now:
                heappop(self._timers)[2]()
                self._drain()
            node_at = self.node.next_deadline()
            if node_at is not None and node_at <= self.now:
                self._to_node(NodeElapsed())
                self._drain()
        self.now = end

    def run_until_stable(self, group_id: str = "g", limit_ms: int = 60_000) -> int:
        """Run until the group is Stable and everybody has heard; how long that took."""
        began = self.now
        while self.now - began < limit_ms:
            self.run(10)
            members = [member for member in self.members.values() if member.alive and not member.core.closed]
            if self.state(group_id) == "Stable" and all(member.core.settled for member in members):
                return self.now - began
        raise AssertionError(f"the group is {self.state(group_id)} after {limit_ms} ms")

    def count(self, event: str) -> int:
        """How many events of this name the node has told."""
        return sum(each.name == event for each in self.events)


def covered(assignments: Mapping[str, Sequence[int]], partitions: int) -> bool:
    """True when every partition has exactly one owner."""
    owned = sorted(partition for each in assignments.values() for partition in each)
    return owned == list(range(partitions))


__all__ = ["Harness", "Member", "TopicPartition", "covered"]
