"""All brokers of this process as the control sees them: as one node that knows what each of them knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.errors import NotPossible
from rejoin.coordinator.core.inputs import (
    CompactionWanted,
    Context,
    Input,
    LockExpired,
    Millis,
    PersisterFault,
    RecordReleased,
    SessionLost,
    Token,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView, LogSlice, OffsetView, ShareStateView, TimerView, TopicView
from rejoin.coordinator.in_process_brokers.broker import BrokerApp
from rejoin.coordinator.in_process_brokers.controller_driver import ControllerDriver
from rejoin.coordinator.in_process_brokers.runtime import BrokerRuntime
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.feed import Feed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.request_contents.traits import Traits, traits_of
from rejoin.protocol.types import LogPartition, TopicPartition

SESSION: str = "broker_session"
"""The timer of the controller, as it is shown beside those of nodes."""


class ControlledNodes:
    """The cores of all brokers."""

    def __init__(self, apps: Sequence[BrokerApp], driver: ControllerDriver) -> None:
        self._apps = apps
        self._driver = driver
        self.settings: Settings = apps[0].runtime.node.settings

    def running(self) -> list[BrokerRuntime]:
        """The runtimes of brokers that are not stopped."""
        return [app.runtime for app in self._apps if app.runtime.is_up]

    def leader_of(self, partition: LogPartition | None) -> BrokerRuntime | None:
        """The broker that leads a partition as the controller knows it, if it runs."""
        registration = None if partition is None else self._driver.controller.partitions.get(partition)
        found = [each for each in self.running() if registration and each.broker.node_id == registration.leader]
        return found[0] if found else None

    def coordinator_of(self, group_id: str) -> BrokerRuntime | None:
        """The broker that leads a group's offsets partition."""
        return self.leader_of(offsets_partition(partition_for(group_id, self.settings.offsets_topic_num_partitions)))

    def find(self, topic: str, partition: int) -> LogPartition | None:
        """A partition by the name of its topic."""
        known = self._driver.controller.partitions
        return next((each for each in known if each.topic == topic and each.partition == partition), None)

    # --- as one node

    def next_deadline(self) -> Millis | None:
        deadlines = [runtime.node.next_deadline() for runtime in self.awake()]
        return min((each for each in (*deadlines, self._driver.next_deadline()) if each is not None), default=None)

    def due(self, now: Millis) -> list[TimerView]:
        found = [timer for runtime in self.awake() for timer in runtime.node.due(now)]
        session = self._driver.next_deadline()
        if session is not None and session <= now:
            found.append(TimerView(SESSION, -1, "", "", session))
        return sorted(found, key=lambda timer: timer.at)

    def awake(self) -> list[BrokerRuntime]:
        """The runtimes of brokers that run and are not paused."""
        return [runtime for runtime in self.running() if not runtime.is_paused]

    def topic_named(self, topic_id: str) -> str | None:
        return next(filter(None, (runtime.node.topic_named(topic_id) for runtime in self.running())), None)

    def group_ids(self) -> list[str]:
        return sorted({group_id for runtime in self.running() for group_id in runtime.node.group_ids()})

    def describe_group(self, group_id: str) -> GroupView | None:
        coordinator = self.coordinator_of(group_id)
        return None if coordinator is None else coordinator.node.describe_group(group_id)

    def summarize_group(self, group_id: str) -> GroupView | None:
        coordinator = self.coordinator_of(group_id)
        return None if coordinator is None else coordinator.node.summarize_group(group_id)

    def describe_offsets(self, group_id: str, now: Millis) -> list[OffsetView]:
        coordinator = self.coordinator_of(group_id)
        return [] if coordinator is None else coordinator.node.describe_offsets(group_id, now)

    def share_state(self, group_id: str, topic: str, partition: int, now: Millis) -> ShareStateView | None:
        leader = self.leader_of(self.find(topic, partition))
        return None if leader is None else leader.node.share_state(group_id, topic, partition, now)

    def share_states(self, group_id: str, now: Millis) -> list[ShareStateView]:
        """The share-partitions of a group, each where its partition is led."""
        found = [each for runtime in self.running() for each in runtime.node.share_states(group_id, now)]
        return sorted(found, key=lambda each: (each.topic, each.partition))

    def describe_topics(self, now: Millis) -> list[TopicView]:
        found: dict[str, TopicView] = {}
        for runtime in self.running():
            for topic in runtime.node.describe_topics(now):
                known = found.setdefault(topic.topic, topic)
                ends = [
                    other if end is None else end if other is None else max(end, other)
                    for end, other in zip(known.end_offsets, topic.end_offsets, strict=False)
                ]
                found[topic.topic] = known.model_copy(update={"end_offsets": ends})
        return [topic for _, topic in sorted(found.items())]

    def compacted_topics(self) -> list[str]:
        return sorted({topic for runtime in self.running() for topic in runtime.node.compacted_topics()})

    def read_log(self, topic: str, partition: int, offset: int, max_bytes: int, now: Millis) -> LogSlice | ErrorCode:
        leader = self.leader_of(self.find(topic, partition))
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return leader.node.read_log(topic, partition, offset, max_bytes, now)

    def waiting(self) -> list[Token]:
        return [token for runtime in self.running() for token in runtime.node.waiting()]

    def copy(self, instead: Callable[[Token], Token]) -> Node:
        raise AssertionError("several brokers have no snapshots")


class ControlledBrokers:
    """The runtimes of all brokers."""

    def __init__(self, apps: Sequence[BrokerApp], driver: ControllerDriver) -> None:
        self.node = ControlledNodes(apps, driver)
        self._apps = apps
        self.broker = apps[0].runtime.broker

    def target_of(self, request: Request, version: int) -> BrokerRuntime:
        """The broker to ask: the coordinator of the group, the leader of the partition, or any that runs."""
        traits = traits_of(request, version, self.node.topic_named)
        if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            return self._with_records(request, traits)
        for group_id in sorted(traits.groups):
            coordinator = self.node.coordinator_of(group_id)
            if coordinator is not None:
                return coordinator
        return self._leader_of_one(traits) or self._any()

    def _leader_of_one(self, traits: Traits) -> BrokerRuntime | None:
        """The leader of the first partition that has one."""
        for topic, partition in sorted(traits.partitions):
            leader = self.node.leader_of(self.node.find(topic, partition))
            if leader is not None:
                return leader
        return None

    def _with_records(self, request: ShareFetchRequest | ShareAcknowledgeRequest, traits: Traits) -> BrokerRuntime:
        """The leader of the partition; of a request that names none, a broker where the member has a session."""
        leader = self._leader_of_one(traits)
        if leader is not None:
            return leader
        group_id, member_id = request.group_id or "", request.member_id or ""
        having = (each for each in self.node.running() if each.node.has_share_session(group_id, member_id))
        return next(having, None) or self._any()

    def broker_named(self, node_id: int) -> BrokerRuntime:
        """A broker by its id, running or not."""
        found = [app.runtime for app in self._apps if app.node_id == node_id]
        if not found:
            there = ", ".join(str(app.node_id) for app in self._apps)
            raise ValueError(f"broker: there is no broker {node_id}; there are: {there}")
        return found[0]

    def _any(self) -> BrokerRuntime:
        """A broker that can answer, if there is one. Raises NotPossible where none runs."""
        runtimes = self.node.running()
        if not runtimes:
            raise NotPossible("no-broker", "every broker is stopped; start one first")
        return next((each for each in runtimes if not each.is_paused and not each.is_cut_off), runtimes[0])

    @property
    def leading(self) -> dict[TopicPartition, int]:
        return {partition: epoch for runtime in self.node.running() for partition, epoch in runtime.leading.items()}

    def submit(self, request: Request, context: Context) -> PendingReply:
        return self.target_of(request, context.api_version).submit(request, context)

    def hand_in(self, what: Input) -> None:
        """Hand in a test's request."""
        if isinstance(what, CompactionWanted | PersisterFault):
            for runtime in self.node.awake():
                runtime.hand_in(what)
            return
        match what:
            case SessionLost():
                target = self.node.coordinator_of(what.group_id)
            case LockExpired() | RecordReleased():
                target = self.node.leader_of(self.node.find(what.topic, what.partition))
            case _:
                target = self._any()
        if target is not None:
            target.hand_in(what)

    def elect(self, partition: TopicPartition) -> bool:
        """Let the leader of a partition lead it in a new epoch."""
        leader = self.node.leader_of(partition)
        return leader is not None and leader.elect(partition)

    def resign(self, partition: TopicPartition) -> bool:
        """Let another broker lead a partition."""
        leader = self.node.leader_of(partition)
        return leader is not None and leader.resign(partition)

    def lead_everything(self) -> None:
        raise AssertionError("several brokers are started anew")

    def go_on_with(self, node: Node, leading: dict[TopicPartition, int]) -> None:
        raise AssertionError("several brokers have no snapshots")

    async def topics_stored(self) -> None:
        for runtime in self.node.running():
            await runtime.topics_stored()


class Feeds:
    """The events of all brokers, as far as waiting for the next one goes."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = feeds

    @property
    def head(self) -> int:
        """How many events there were, of all brokers together."""
        return sum(feed.head for feed in self._feeds)

    @property
    def closed(self) -> bool:
        return all(feed.closed for feed in self._feeds)

    async def wait(self, after: int) -> None:
        if self.head > after or self.closed:
            return
        waits = [asyncio.ensure_future(feed.wait(feed.head)) for feed in self._feeds if not feed.closed]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
