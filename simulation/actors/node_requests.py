"""Requests that no client of a scenario sends: of one node to another, and of an operator to all nodes.

Those between nodes take a millisecond each way. One fails with a node that is down or crashes, or after as long as in a
service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.core.effects import SendRequest
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.share.dead_letters import ENABLE
from rejoin.coordinator.core.topics.config_requests import AlterOperation, ResourceType
from rejoin.coordinator.core.topics.configs import RATE_CONFIG
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.types import ZERO_UUID
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Requester

if TYPE_CHECKING:
    from rejoin.simulation.actors.node import NodeActor

EACH_WAY_MS: Final[Millis] = 1
TIMEOUT_MS: Final[Millis] = 10_000


class NodeRequest(Requester):
    """One request: the token that its receiver answers."""

    __slots__ = ("_effect", "_incarnation", "_is_done", "_receiver", "_sender")

    def __init__(self, sender: NodeActor, effect: SendRequest) -> None:
        self._sender = sender
        self._incarnation = sender.incarnation
        self._effect = effect
        self._receiver: NodeActor | None = None
        self._is_done = False

    def send(self) -> None:
        """Let it travel."""
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._arrive, None)

    def _arrive(self, _: None) -> None:
        effect, nodes, world = self._effect, self._sender.cluster.nodes, self._sender.world
        receiver = next((node for node in nodes if node.broker.node_id == effect.node_id), None)
        if receiver is None or not receiver.is_up:
            self.on_response(None)
        else:
            self._receiver = receiver
            receiver.peer_requests[self] = None
            world.control(world.now + TIMEOUT_MS, self.on_response, None)
            receiver.hand_in(Received(self, effect.request, Context(effect.api_version, self._sender.name)))

    def on_response(self, response: Response | None) -> None:
        if self._is_done:
            return
        self._is_done = True
        if self._receiver is not None:
            self._receiver.peer_requests.pop(self, None)
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._return, response)

    def _return(self, response: Response | None) -> None:
        self._sender.answered(self._incarnation, self._effect.send_id, response)


# -- of an operator


def topic_creation(
    name: str, partitions: int, is_written: bool, *, has_dead_letters: bool = False
) -> CreateTopicsRequest:
    """Create a topic. What a simulation reads and writes is its own; of other topics nodes need the partitions."""
    configs = () if is_written else (CreatableTopicConfig(name=RATE_CONFIG, value="0"),)
    if has_dead_letters:
        configs = (*configs, CreatableTopicConfig(name=ENABLE, value="true"))
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=configs)
    return CreateTopicsRequest(topics=(topic,))


def topic_growth(name: str, partitions: int) -> CreatePartitionsRequest:
    """Give a topic so many partitions."""
    grown = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False)


def topic_deletion(name: str) -> DeleteTopicsRequest:
    """Delete a topic."""
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=ZERO_UUID),), timeout_ms=1_000)


def group_configuration(group_id: str, settings: Mapping[str, str]) -> IncrementalAlterConfigsRequest:
    """Give a group settings of its own."""
    configs = tuple(
        IncrementallyAlterableConfig(name=name, config_operation=AlterOperation.SET, value=value)
        for name, value in settings.items()
    )
    group = IncrementalAlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=group_id, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(group,), validate_only=False)
