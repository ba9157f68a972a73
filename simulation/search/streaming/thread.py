"""A stream thread that sends raw heartbeats: an honest member until it is made to lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from rejoin.client.core.inputs import Failure
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsTopology,
)
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import UserEndpoint
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.kernel import Millis, Order, World
from rejoin.simulation.network import Exchange, Network, NetworkClient
from rejoin.simulation.node_connections import NAMED, NodeConnections

Task: TypeAlias = tuple[str, int]

VERSION: Final = 1
TIMEOUT_MS: Final[Millis] = 3_000
RETRY_MS: Final[Millis] = 300
INTERVAL_MS: Final[Millis] = 1_000
LEAVE, LEAVE_FOR_A_MOMENT = -1, -2

_LOST: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
"""Errors after which a member has nothing, and joins anew."""

_WAIT: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)
"""Errors after which the same heartbeat is sent again."""


class FreeThread(NetworkClient):
    """A member of a streams group, from one start to the next."""

    def __init__(
        self,
        world: World,
        network: Network,
        cluster: Cluster,
        name: str,
        *,
        group_id: str,
        process_id: str,
        topology: StreamsTopology,
        rebalance_timeout_ms: Millis,
        instance_id: str | None,
        has_endpoint: bool,
    ) -> None:
        super().__init__(world, name)
        self.cluster = cluster
        self.group_id = group_id
        self.process_id = process_id
        self.topology = topology
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.instance_id = instance_id
        self.endpoint = UserEndpoint(host=name, port=80) if has_endpoint else None
        self.member_id = f"{name}-0"
        self.is_up = False
        self.epoch = 0
        self.active: frozenset[Task] = frozenset()
        self.standby: frozenset[Task] = frozenset()
        self.is_honest = True
        """Whether the member has said everything that it runs since it joined."""
        self.missed = False
        """Whether a response was lost since it joined: Kafka names tasks only in the response that changes them."""
        self.holds_until: Millis = 0
        """Until then the member gives up no active task, as if its listener hung."""
        self.on_taken: list[Callable[[FreeThread, frozenset[Task]], None]] = []
        """Called with active tasks that begin to run."""
        self.refusals: list[str] = []
        """Errors that an honest member never deserves."""
        self._connections = NodeConnections(self, network, cluster)
        self._said: tuple[frozenset[Task], frozenset[Task]] | None = None
        self._in_flight: int | None = None
        self._requests = 0
        self._starts = 0
        self._alarm = 0
        self._extra: dict[str, Any] = {}

    # --- a life

    def start(self, *, keeps_id: bool = True) -> None:
        """Join with nothing."""
        self._starts += 1
        if not keeps_id:
            self.member_id = f"{self.name}-{self._starts}"
        self.is_up = True
        self.join()

    def join(self) -> None:
        """Drop all tasks and join, under the same id."""
        self._lose_everything()
        self._in_flight = None
        self._beat_in(0)

    def stop(self, epoch: int | None = None) -> None:
        """End, silently or with an epoch that says goodbye."""
        if not self.is_up:
            return
        if epoch is not None:
            request = StreamsGroupHeartbeatRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                member_epoch=epoch,
                endpoint_information_epoch=0,
                instance_id=self.instance_id,
            )
            self.send_aside(request)
        else:
            self._connections.drop()
        self.is_up = False
        self._in_flight = None
        self._alarm += 1
        self._lose_everything()

    def say(self, **extra: Any) -> None:
        """Put more into the next heartbeat, and send it soon."""
        self._extra |= extra
        if self.is_up and self._in_flight is None:
            self._beat_in(0)

    def _lose_everything(self) -> None:
        self.epoch = 0
        self.active = self.standby = frozenset()
        self._said = None
        self._extra = {}
        self.is_honest = True
        self.missed = False

    # --- heartbeats

    def _beat_in(self, delay_ms: Millis) -> None:
        self._alarm += 1
        self.world.at(self.world.now + delay_ms, self.lane(Order.USER), self._beat, self._alarm)

    def _beat(self, alarm: int) -> None:
        if alarm != self._alarm or not self.is_up or self.later(self._beat, alarm, self.lane(Order.USER)):
            return
        node = self.cluster.leader_of(self.group_id)
        if node is None or self.random.random() < 0.05:
            node = self.random.choice(self.cluster.nodes)  # one that leads no more, or never did
        self._requests += 1
        self._in_flight = self._requests
        connection = self._connections.to(node.index, NAMED)
        connection.ask(self._requests, self._request(), VERSION, TIMEOUT_MS)

    def _request(self) -> StreamsGroupHeartbeatRequest:
        said: dict[str, Any] = {}
        running = (self.active, self.standby)
        if self.epoch == 0:
            said = {
                "topology": self.topology,
                "rebalance_timeout_ms": self.rebalance_timeout_ms,
                "process_id": self.process_id,
                "user_endpoint": self.endpoint,
            }
        if self.epoch == 0 or running != self._said:
            said |= {"active_tasks": _ids(self.active), "standby_tasks": _ids(self.standby), "warmup_tasks": ()}
        self._said = running
        extra, self._extra = self._extra, {}
        return StreamsGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "endpoint_information_epoch": -1,
                "instance_id": self.instance_id,
                **said,
                **extra,
            }
        )

    def send_aside(self, request: Request) -> None:
        """Send a request whose answer is not looked at."""
        node = self.cluster.leader_of(self.group_id)
        if node is not None:
            self._requests += 1
            self._connections.to(node.index, NAMED).ask(self._requests, request, VERSION, TIMEOUT_MS)

    def owned_less_one(self) -> dict[str, Any] | None:
        """Lists of tasks that leave out one that runs, if there is any."""
        if not self.active or self.epoch == 0:
            return None
        left_out = max(self.active)
        return {
            "active_tasks": _ids(self.active - {left_out}),
            "standby_tasks": _ids(self.standby),
            "warmup_tasks": (),
        }

    def offsets_of_tasks(self) -> tuple[TaskOffset, ...]:
        """Offsets of tasks that run, and of some that do not."""
        names = [each.subtopology_id for each in self.topology.subtopologies]
        tasks = self.standby | {(self.random.choice(names), self.random.randrange(4))}
        return tuple(
            TaskOffset(subtopology_id=name, partition=partition, offset=self.random.randrange(1_000))
            for name, partition in sorted(tasks)
        )

    # --- responses

    def answered(self, exchange: Exchange) -> None:
        response = exchange.response
        if exchange.request_id != self._in_flight or not isinstance(response, StreamsGroupHeartbeatResponse):
            return
        self._in_flight = None
        error = response.error_code
        if error is ErrorCode.NONE:
            self._accepted(response)
        elif error in _LOST:
            self.join()
        elif error in _WAIT or self.endpoint is not None:
            # Kafka: a member with an endpoint is refused while topics are missing.
            self._said = None
            self._beat_in(RETRY_MS)
        else:
            if self.is_honest:
                self.refusals.append(f"{self.member_id}: {error.name}")
            self.join()

    def _accepted(self, response: StreamsGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        if response.active_tasks is None or response.standby_tasks is None:
            self._beat_in(INTERVAL_MS)
            return
        active, standby = _tasks(response.active_tasks), _tasks(response.standby_tasks)
        if self.world.now < self.holds_until and not self.active <= active:
            self.missed = True
            self._beat_in(INTERVAL_MS)
            return
        taken = active - self.active
        self.active, self.standby = active, standby - active
        for call in self.on_taken if taken else ():
            call(self, taken)
        self._beat_in(INTERVAL_MS if (self.active, self.standby) == self._said else 1)

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        if exchange.request_id == self._in_flight:
            self._in_flight = None
            self._said = None
            self.missed = True
            self._beat_in(RETRY_MS)


def _ids(tasks: Iterable[Task]) -> tuple[TaskIds, ...]:
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return tuple(TaskIds(subtopology_id=name, partitions=tuple(each)) for name, each in found.items())


def _tasks(ids: Iterable[TaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, partition) for each in ids for partition in each.partitions)


def flat(tasks: Mapping[str, Iterable[int]]) -> frozenset[Task]:
    """Tasks by subtopology, one by one."""
    return frozenset((name, partition) for name, partitions in tasks.items() for partition in partitions)
