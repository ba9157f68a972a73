"""Plays recordings of three brokers on three brokers in one process, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.options import Options
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
)
from rejoin.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.types import LogPartition, TopicIdPartition
from tests.conformance.transactions.recorded_records import PORT, RecordedPlay, create_topics
from tests.conformance.transactions.recorded_scripts import Action, Script

MOST_MS: Final = 20_000
"""The longest that anything is waited for."""


class ClusterNode:
    """One broker, asked past its listeners. All share the clock."""

    def __init__(self, cluster: BrokerCluster, clock: VirtualClock, number: int) -> None:
        self.app = cluster.apps[number - 1]
        self.replies: dict[int, Response] = {}
        self.answered_at: dict[int, Millis] = {}
        self._clock = clock
        self._requests = 0

    @property
    def now(self) -> Millis:
        return self._clock.now()

    def elapse(self, length_ms: Millis) -> None:
        """Let time pass for all brokers, with each timer at its own time."""
        until = self.now + length_ms
        while (due := self._clock.next_alarm()) is not None and due <= until:
            self._clock.jump(max(due, self.now))
            self._clock.catch_up()
        self._clock.jump(until)

    def send_as(self, client: str, request: Request, version: int) -> int:
        """Send a client's request; returns the number under which it is answered."""
        self._requests += 1
        context = Context(version, client, "/127.0.0.1")
        self.app.runtime.submit(request, context).when_answered(partial(self._answered, self._requests))
        return self._requests

    def _answered(self, number: int, response: Response | None) -> None:
        if response is not None:
            self.replies[number] = response
            self.answered_at[number] = self.now

    def ask(self, request: Request, version: int) -> Any:
        """The response, which is there at once."""
        return self.replies[self.send_as("setup", request, version)]


class ClusterPlay(RecordedPlay):
    """Three brokers with the topics of a script. Internal partitions are led where they were in the recording.

    When a dead broker is fenced depends on its last heartbeat, and on whether the controller died with it.
    """

    early_ms = 500
    late_ms = 5_000

    _nodes: list[Any]

    def __init__(self, script: Script, cluster: BrokerCluster, clock: VirtualClock) -> None:
        self._cluster = cluster
        self._clock = clock
        super().__init__(script, over_wire=True)

    def _make_nodes(self) -> list[Any]:
        return [ClusterNode(self._cluster, self._clock, number) for number in self._cluster.node_ids()]

    def _prepare(self) -> None:
        for driven in self._nodes:
            self.names.name(PORT + driven.app.node_id, f"port-{driven.app.node_id}")
            # No producer gets the id 0, which stands for none in some answers.
            driven.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 1)
        first = self._nodes[0]
        first.send_as("setup", InitProducerIdRequest(transactional_id="warm-up", transaction_timeout_ms=1), 1)
        for name, topic in self._script.topics.items():
            assignments = tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(replicas))
                for index, replicas in enumerate(topic["assignment"])
            )
            creatable = CreatableTopic(
                name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=()
            )
            (made,) = create_topics(first, creatable).topics
            self.names.name(made.topic_id, f"id:{name}")
        for internal, leaders in self._script.leaders.items():
            for index, leader in enumerate(leaders):
                self._move(internal, index, leader)

    def _partition(self, topic: str, index: int) -> LogPartition:
        if topic == OFFSETS_TOPIC:
            return offsets_partition(index)
        topic_id = TRANSACTION_STATE_TOPIC_ID if topic == TRANSACTION_STATE_TOPIC else self.names.values[f"id:{topic}"]
        return TopicIdPartition(topic_id, index, topic)

    def _move(self, topic: str, index: int, leader: int) -> None:
        partition = self._partition(topic, index)
        if self._cluster.registrations()[partition].leader != leader:
            assert self._cluster.move(partition, leader, unclean=False), f"{topic}-{index} stays where it is"

    async def act(self, action: Action) -> None:
        """Do what is no request, at the instant at which it began or ended."""
        fields = action.fields
        match action.what:
            case "move the leader":
                self._go_to(fields["ended"])
                self._move(fields["topic"], fields["partition"], fields["broker"])
            case "kill a broker":
                self._go_to(fields["began"])
                await self._cluster.kill_broker(fields["broker"])
            case "stop a broker":
                self._go_to(fields["ended"])
                await self._cluster.stop_broker(fields["broker"])
            case "start a broker":
                self._go_to(fields["ended"])
                await self._cluster.start_broker(fields["broker"])
            case "wait until all partitions are led":
                self._wait_while(self._is_leaderless)
            case _:
                self.do(action)
        for topic, leaders in fields.get("leaders", {}).items():
            # Which replica in sync is chosen depends on their order, which earlier moves have changed.
            for index, leader in enumerate(leaders):
                self._move(topic, index, leader)

    def _go_to(self, elapsed: float) -> None:
        driven = self._nodes[0]
        driven.elapse(max(0, self.start + round(elapsed) - driven.now))

    def _is_leaderless(self) -> bool:
        running = [number for number in self._cluster.node_ids() if self._cluster.state(number) == "running"]
        return any(each.leader not in running for each in self._cluster.registrations().values())

    def _wait_while(self, is_so: Any) -> None:
        for _ in range(MOST_MS):
            if not is_so():
                return
            self._nodes[0].elapse(1)
        raise AssertionError("what was waited for never came")

    def _is_decided(self, transactional_id: str) -> bool:
        index = partition_for(transactional_id, len(self._script.leaders[TRANSACTION_STATE_TOPIC]))
        leader = self._cluster.registrations()[self._partition(TRANSACTION_STATE_TOPIC, index)].leader
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        states = self._nodes[leader - 1].ask(request, 0).transaction_states
        return str(states[0].transaction_state).startswith("Prepare")


@asynccontextmanager
async def played(script: Script) -> AsyncIterator[ClusterPlay]:
    """Brokers on which a script is about to be played."""
    clock = VirtualClock()
    usual = {"emulator_records_per_second": None}
    settings = Settings.model_validate(usual | script.settings)
    async with BrokerCluster(Options(settings=settings, port=PORT + 1, listen=False, clock=clock), 3) as cluster:
        yield ClusterPlay(script, cluster, clock)
