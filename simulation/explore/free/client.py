"""A free client: what it was answered, of which its next requests are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.client.core.inputs import Failure
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopicPartitions,
)
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.simulation.explore.free.letters import AGAIN, Sent
from rejoin.simulation.explore.kernel import FIRST_REQUEST
from rejoin.simulation.network import ClientConnection, Exchange, NetworkClient

if TYPE_CHECKING:
    from rejoin.simulation.explore.free.spec import FreeSpec
    from rejoin.simulation.simulation import Simulation


class FreeConnection(ClientConnection):
    """A connection on which everything arrives at once."""

    __slots__ = ()

    def answer(self, exchange: Exchange, response: Response) -> None:
        exchange.response = response
        self.client.answered(exchange)


class FreeClient(NetworkClient):
    """A client that sends what it is asked to, and remembers its member id, its generation or epoch and the like."""

    def __init__(self, simulation: Simulation, free: FreeSpec, number: int) -> None:
        super().__init__(simulation.world, f"free-{number}")
        self.number: int = number
        self.group_id: str = free.group
        self.topics: tuple[str, ...] = simulation.scenario.topics_of(free.group)
        group = simulation.scenario.groups[free.group]
        self.session_timeout_ms: int = group.session_timeout
        self.rebalance_timeout_ms: int = group.max_poll_interval
        self.chosen_id: str = f"{self.name}-id"
        """The member id with which it joins consumer groups."""
        self.member_id: str = ""
        """The member id that it was given last."""
        self.instance_id: str | None = None
        """The instance id of its last join."""
        self.generation: int = -1
        self.members: tuple[tuple[str, bytes], ...] = ()
        """The group's members, with their metadata, if it was made leader last."""
        self.epoch: int = 0
        self.assigned: tuple[OwnedTopicPartitions, ...] = ()
        self.keeps_last = AGAIN in free.alphabet()
        self.last: Sent | None = None
        """Its last request, where it may send that again."""
        self.sent = 0
        self.answers: list[Exchange] = []
        """Answers of this step, in their order."""
        self.connection = FreeConnection(simulation.network, self, simulation.cluster.nodes[0], 0)

    def send(self, sent: Sent) -> None:
        """Send a request, which arrives at once."""
        if self.keeps_last:
            self.last = sent
        self.sent += 1
        request = sent.request
        if isinstance(request, JoinGroupRequest):
            self.instance_id = request.group_instance_id
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch in (0, -2):
            self.instance_id = request.instance_id
        now = self.world.now
        self.connection.node.receive(Exchange(self.connection, 0, self.last_id, request, sent.version, now, now))

    @property
    def last_id(self) -> int:
        """The number of its last request, among all requests of the run."""
        return FIRST_REQUEST * (self.number + 1) + self.sent

    def answered(self, exchange: Exchange) -> None:
        self.answers.append(exchange)
        response, request = exchange.response, exchange.request
        if isinstance(response, JoinGroupResponse):
            if response.error_code in _GIVES_ID:
                self.member_id = response.member_id
            if response.error_code is ErrorCode.NONE:
                self.generation = response.generation_id
                self.members = tuple((each.member_id, each.metadata) for each in response.members)
        elif isinstance(response, ConsumerGroupHeartbeatResponse):
            assert isinstance(request, ConsumerGroupHeartbeatRequest), "a heartbeat is answered"
            if response.error_code is ErrorCode.NONE:
                self.epoch = response.member_epoch
                if response.assignment is not None:
                    self.assigned = tuple(
                        OwnedTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                        for each in response.assignment.topic_partitions
                    )

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        """Nothing fails: there is no network."""

    def knowledge(self) -> tuple[object, ...]:
        """Everything that later requests depend on."""
        return (
            *(self.member_id, self.instance_id, self.generation, self.members),
            *(self.epoch, self.assigned, self.last),
        )


_GIVES_ID: Final = (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
