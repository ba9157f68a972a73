"""Drives one node on a virtual clock, with an offsets log in memory that takes no time.

This is the contract of a core's driver in its smallest form: hand in what happened, carry out the effects in order, and
come back at the next deadline. What ends at once, ends in its place among the effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from rejoin.coordinator.core.effects import (
    Append,
    DeferredEvents,
    DeleteLog,
    Effect,
    ReadLog,
    Reply,
    ResolveRegexes,
    SendRequest,
)
from rejoin.coordinator.core.groups.consumer.regex_resolution import resolve_regexes
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    CompactionWanted,
    Context,
    Elapsed,
    Elected,
    Input,
    LogRead,
    Millis,
    NodeAnswered,
    Received,
    Resigned,
    SessionLost,
    Stored,
    Token,
)
from rejoin.coordinator.core.node import Node
from rejoin.journal.events.base import Event
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition

START: Final = 1_700_000_000_000
"""Where virtual time begins: the same in every run."""

AppendDone: TypeAlias = Callable[[ErrorCode], None]
ReadDone: TypeAlias = Callable[[tuple[Any, ...]], None]


class Listener(Protocol):
    """Observer of a driver, called in the order of the effects."""

    def on_reply(self, token: Token, response: Response) -> None:
        """A request is answered."""

    def on_event(self, event: Event) -> None:
        """The node emits an event."""


@dataclass(slots=True)
class NodeLog:
    """One partition's log."""

    epoch: int = -1
    records: list[Any] = field(default_factory=list)


class NodeLogs:
    """The logs by partition, fenced by the epochs of offsets partitions. They outlive the nodes that write them.

    An append has ended, and a log is read, when the call returns; unless they are deferred, to be ended one by one.
    """

    def __init__(self, on_append: Callable[[Append], None] | None = None) -> None:
        self.defers_appends = False
        self.defers_reads = False
        self.error: ErrorCode | None = None
        """Error of every append, or none."""
        self.pending_appends: deque[tuple[Append, AppendDone]] = deque()
        self.pending_reads: deque[tuple[LogPartition, ReadDone]] = deque()
        self._on_append = on_append
        self._logs: dict[LogPartition, NodeLog] = {}

    def of(self, partition: LogPartition) -> NodeLog:
        """The log of a partition."""
        return self._logs.setdefault(partition, NodeLog())

    def next_epoch(self, partition: TopicPartition) -> int:
        """A new epoch; what older ones append from now on is refused."""
        log = self.of(partition)
        log.epoch += 1
        return log.epoch

    def append(self, append: Append, done: AppendDone) -> None:
        """Write, all or none."""
        if self.defers_appends:
            self.pending_appends.append((append, done))
        else:
            self._write(append, done, self.error)

    def end_append(self, error: ErrorCode | None = None) -> None:
        """End the oldest pending append, with an error if one is given."""
        append, done = self.pending_appends.popleft()
        self._write(append, done, error)

    def _write(self, append: Append, done: AppendDone, error: ErrorCode | None) -> None:
        log = self.of(append.partition)
        if append.epoch < self.of(append.leased_by or append.partition).epoch:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif error:
            done(error)
        else:
            log.records.extend(append.records)
            if self._on_append is not None:
                self._on_append(append)
            done(ErrorCode.NONE)

    def delete(self, partition: TopicIdPartition) -> None:
        """Drop a partition's log."""
        self._logs.pop(partition, None)

    def read(self, partition: LogPartition, done: ReadDone) -> None:
        """Hand out a partition's records."""
        if self.defers_reads:
            self.pending_reads.append((partition, done))
        else:
            done(tuple(self.of(partition).records))

    def end_read(self) -> None:
        """End the oldest pending read."""
        partition, done = self.pending_reads.popleft()
        done(tuple(self.of(partition).records))

    def drop_pending(self) -> None:
        """Forget pending appends and reads: their node is gone."""
        self.pending_appends.clear()
        self.pending_reads.clear()


@dataclass(frozen=True, slots=True)
class _Sent:
    """Stands for a node that has sent a request to another."""

    sender: NodeDriver
    send_id: int


class NodeDriver:
    """A node, its clock and its log. The clock stands still but in :meth:`fire`."""

    def __init__(self, node: Node, logs: NodeLogs, listener: Listener, now: Millis = START) -> None:
        self.node = node
        self.logs = logs
        self.now = now
        self.paused = False
        """Whether the process stands still: then no timer fires."""
        self.peers: dict[int, NodeDriver] = {}
        """The other nodes, by their ids."""
        self._listener = listener

    def see_cluster(self, brokers: int = 1) -> None:
        """Learn of the cluster: this node, which leads every offsets partition, and others that follow."""
        count = self.node.settings.offsets_topic_num_partitions
        seen = tuple(Broker(number, f"node-{number}", 9_094 + number) for number in range(1, brokers + 1))
        self.step(ClusterSeen(seen, {offsets_partition(index): 1 for index in range(count)}))

    def request(self, token: Token, request: Request, context: Context) -> None:
        """Hand in a request."""
        self.step(Received(token, request, context))

    def elect(self, partition: TopicPartition) -> None:
        """Lead an offsets partition, in a new epoch."""
        self.step(Elected(partition, self.logs.next_epoch(partition)))

    def resign(self, partition: TopicPartition) -> None:
        """Lead an offsets partition no more."""
        self.step(Resigned(partition))

    def lose_session(self, group_id: str, member_id: str) -> None:
        """End a member's session now."""
        self.step(SessionLost(group_id, member_id))

    def compact(self, topic: str | None) -> None:
        """Clean the logs of a compacted topic now, or of all."""
        self.step(CompactionWanted(topic))

    def next_deadline(self) -> Millis | None:
        """When to call :meth:`fire`, or none while there is nothing to wait for."""
        deadline = None if self.paused else self.node.next_deadline()
        return None if deadline is None else max(deadline, self.now)

    def fire(self) -> None:
        """Let the next deadline come, with all that is due then."""
        deadline = self.next_deadline()
        assert deadline is not None, "there is something to wait for"
        self.now = deadline
        self.step(Elapsed())

    def step(self, what: Input) -> None:
        """Hand something in, and carry out what the core wants done."""
        effects = self.effects_of(what)
        for effect in effects:
            self.carry_out(effect)
        # Kafka finds the topics on another thread: what the step itself wants written comes first.
        for effect in effects:
            if isinstance(effect, ResolveRegexes):
                self.resolve(effect)

    def resolve(self, effect: ResolveRegexes) -> None:
        """Find the topics of expressions, at once."""
        self.step(resolve_regexes(effect))

    def effects_of(self, what: Input) -> list[Effect]:
        """Hand something in, and carry nothing out."""
        return self.node.step(what, self.now)

    def carry_out(self, effect: Effect) -> None:
        """Do what one effect asks for."""
        match effect:
            case Reply(token=_Sent() as sent):
                sent.sender.step(NodeAnswered(sent.send_id, effect.response))
            case Reply():
                self._listener.on_reply(effect.token, effect.response)
            case Append():
                self.logs.append(effect, partial(self._stored, effect))
            case ReadLog():
                self.logs.read(effect.partition, partial(self._read, effect))
            case DeleteLog():
                self.logs.delete(effect.partition)
            case SendRequest():
                self._send(effect)
            case DeferredEvents():
                for event in effect.make():
                    self._listener.on_event(event)
            case Event():
                self._listener.on_event(effect)

    def _send(self, effect: SendRequest) -> None:
        """Hand a request to another node; its answer comes back as soon as there is one."""
        peer = self.peers.get(effect.node_id)
        if peer is None:
            self.step(NodeAnswered(effect.send_id, None))
        else:
            peer.request(_Sent(self, effect.send_id), effect.request, Context(effect.api_version, by_operator=True))

    def _stored(self, append: Append, error: ErrorCode) -> None:
        self.step(Stored(append.partition, append.epoch, append.append_id, error))

    def _read(self, wanted: ReadLog, records: tuple[Any, ...]) -> None:
        self.step(LogRead(wanted.partition, wanted.epoch, records, True))
