"""Lives of streams groups on one node, as rows of a journal: each with something wrong, or nearly so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.simulation import RunEnded
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsTopology
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import CopartitionGroup, UserEndpoint
from tests.coordinator.core.driver import topic
from tests.coordinator.core.groups.streams.test_internal_topics import StreamsNode
from tests.coordinator.core.groups.streams.word_count import COUNTS, info, subtopology, word_count

RUN = "run"
GROUP = "app"


@dataclass
class Thread:
    """A stream thread: its epoch and its tasks as the last replies have them."""

    process: str
    instance: str | None = None
    epoch: int = 0
    tasks: dict[str, tuple[TaskIds, ...]] = field(default_factory=dict)


class RecordedStreams(StreamsNode):
    """A node with the application ``app``, which keeps when each event came."""

    def __init__(self, **settings: Any) -> None:
        self.timed: list[tuple[int, Event]] = []
        super().__init__(**settings)
        self.threads: dict[str, Thread] = {}

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        self.timed.append((self.now, event))

    def receive(self, token: Token, request: Request, version: int, *, principal: str = "User:ANONYMOUS") -> None:
        """Hand in a request; each thread has a client.id of its own."""
        name = f"client-{request.member_id}" if isinstance(request, StreamsGroupHeartbeatRequest) else "client"
        self.request(token, request, Context(version, name, "/127.0.0.1", principal))

    def creates(self, name: str, partitions: int) -> None:
        self.ask(CreateTopicsRequest(topics=(topic(name, partitions),)), 7, principal="User:setup")

    # --- threads

    def starts(
        self,
        member: str,
        process: str = "",
        *,
        instance: str | None = None,
        topology: StreamsTopology | None = None,
        **given: Any,
    ) -> Any:
        """A thread joins; without a process it has one of its own."""
        self.threads[member] = thread = Thread(process or f"process-{member}", instance)
        answer = self.heartbeat(
            0,
            member,
            instance_id=instance,
            rebalance_timeout_ms=60_000,
            topology=topology or word_count(info(COUNTS)),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=thread.process,
            **given,
        )
        if answer.error_code is not ErrorCode.NONE:
            del self.threads[member]
        else:
            self._take(thread, answer)
        return answer

    def beats(self, member: str, **given: Any) -> Any:
        """The next heartbeat of a thread, which has what it was given."""
        thread = self.threads[member]
        answer = self.heartbeat(thread.epoch, member, instance_id=thread.instance, **{**thread.tasks, **given})
        self._take(thread, answer)
        return answer

    def _take(self, thread: Thread, answer: Any) -> None:
        if answer.error_code is not ErrorCode.NONE:
            return
        thread.epoch = answer.member_epoch
        for role in ("active_tasks", "standby_tasks", "warmup_tasks"):
            listed = getattr(answer, role)
            if listed is not None:
                thread.tasks[role] = listed

    def rounds(self, count: int = 4, ms: int = 1_000) -> None:
        """All threads send their heartbeats in turn, so often."""
        for _ in range(count):
            self.elapse(ms)
            for member in list(self.threads):
                self.beats(member)

    def closes(self, member: str) -> None:
        thread = self.threads.pop(member)
        self.heartbeat(-1 if thread.instance is None else -2, member, instance_id=thread.instance)

    def dies(self, member: str) -> None:
        """The thread sends nothing from now on."""
        del self.threads[member]

    def reports(self, member: str, offset: int, end: int, task: int = 0) -> None:
        """A thread reports how far a task's state is."""
        offsets = (TaskOffset(subtopology_id="1", partition=task, offset=offset),)
        ends = (TaskOffset(subtopology_id="1", partition=task, offset=end),)
        self.beats(member, task_offsets=offsets, task_end_offsets=ends)

    def journal(self) -> str:
        """All events as lines of a journal."""
        encoder = RowEncoder(RUN, "coordinator", "1")
        lines = [encoder.encode(number, at, event) for number, (at, event) in enumerate(self.timed, 1)]
        lines.append(RowEncoder(RUN, "simulation", "lab").encode(1, self.now, RunEnded(seed=1)))
        return "".join(line.decode() + "\n" for line in lines)


def joined_lines(sources: tuple[str, ...]) -> StreamsTopology:
    """One subtopology that joins its source topics."""
    group = CopartitionGroup(
        source_topics=tuple(range(len(sources))), source_topic_regex=(), repartition_source_topics=()
    )
    return StreamsTopology(epoch=0, subtopologies=(subtopology(0, source_topics=sources, copartition_groups=(group,)),))


def two_threads(node: RecordedStreams) -> None:
    """Two processes share the tasks."""
    node.starts("a")
    node.rounds(2)
    node.starts("b")
    node.rounds()


def healthy(node: RecordedStreams) -> None:
    """A second process comes, and the first one leaves."""
    two_threads(node)
    node.closes("a")
    node.rounds()


def crash(node: RecordedStreams) -> None:
    """One process dies, and its tasks have no owner until its session ends."""
    two_threads(node)
    node.dies("a")
    node.rounds(50)


def without_owner(node: RecordedStreams) -> None:
    """A process is gone, and the one that is to take its tasks over sends no heartbeat for a long time."""
    two_threads(node)
    node.closes("a")
    node.elapse(40_000)
    node.rounds()


def rolling_restart(node: RecordedStreams) -> None:
    """Each process goes and comes back."""
    two_threads(node)
    for member in ("a", "b"):
        node.closes(member)
        node.rounds(2)
        node.starts(f"{member}2", f"process-{member}")
        node.rounds()


def source_missing(node: RecordedStreams) -> None:
    """A topology whose source topic comes late."""
    node.starts("a", topology=joined_lines(("nowhere",)))
    node.rounds(10)
    node.creates("nowhere", 2)
    node.rounds()


def wrong_partitions(node: RecordedStreams) -> None:
    """Two topics that are joined have different numbers of partitions."""
    node.creates("orders", 4)
    node.starts("a", topology=joined_lines(("lines", "orders")))
    node.rounds(3)


def endpoint_trap(node: RecordedStreams) -> None:
    """A member with an endpoint comes before its source topic."""
    endpoint = UserEndpoint(host="localhost", port=8080)
    node.starts("a", topology=joined_lines(("nowhere",)), user_endpoint=endpoint)


def other_topology(node: RecordedStreams) -> None:
    """Another application has the same application.id."""
    two_threads(node)
    node.starts("c", topology=joined_lines(("lines",)))


def shutdown(node: RecordedStreams) -> None:
    """A member asks all to end."""
    two_threads(node)
    node.beats("a", shutdown_application=True)
    for member in ("b", "a"):
        node.closes(member)


def changing_metadata(node: RecordedStreams, times: int = 8) -> None:
    """A member sends another rebalance timeout with each heartbeat."""
    two_threads(node)
    for number in range(times):
        node.beats("b", rebalance_timeout_ms=60_000 + number + 1)
        node.rounds(1)


def standby_never_ready(node: RecordedStreams, gains: int = 0) -> None:
    """A standby that falls behind the changelog for a quarter of an hour."""
    two_threads(node)
    for number in range(15):
        for _ in range(6):
            node.rounds(1, 10_000)
        member = next(each for each, thread in node.threads.items() if _has_standby(thread, 0))
        node.reports(member, 1_000 + number * (100 + gains), 200_000 + number * 100)


def _has_standby(thread: Thread, task: int) -> bool:
    return any(task in each.partitions for each in thread.tasks["standby_tasks"])


def topics_refused(node: RecordedStreams) -> None:
    """The changelog is to have more replicas than there are brokers."""
    node.starts("a", topology=word_count(info(COUNTS, replicas=7)))
    node.rounds(2)


def invalid_topology(node: RecordedStreams) -> None:
    """A repartition topic is read, and no part of the topology writes it."""
    unwritten = subtopology(0, source_topics=("lines",), repartition_source_topics=(info("app-nowhere-repartition"),))
    node.starts("a", topology=StreamsTopology(epoch=0, subtopologies=(unwritten,)))


def full(node: RecordedStreams) -> None:
    """A third thread starts."""
    two_threads(node)
    node.starts("c")


def another_type(node: RecordedStreams) -> None:
    """Members of the consumer protocol have the application's id."""
    node.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="consumer",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("lines",),
            topic_partitions=(),
        ),
        1,
    )
    node.starts("a")


def turned_off(node: RecordedStreams) -> None:
    """The cluster serves no streams groups."""
    node.starts("a")


def all_tables() -> str:
    """A journal of a life with rows of all tables of streams groups."""
    node = RecordedStreams(group_streams_num_standby_replicas=1)
    changing_metadata(node)
    standby_never_ready(node)
    return node.journal()
