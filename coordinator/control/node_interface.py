"""What the control needs of the node that it controls: the service's runtime and its feed of events."""

from __future__ import annotations

from typing import Protocol

from rejoin.coordinator.core.inputs import Broker, Context, Input
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.protocol.message import Request
from rejoin.protocol.types import TopicPartition


class ControlledRuntime(Protocol):
    """A node at work."""

    node: Node
    broker: Broker

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The offsets partitions led, each with its epoch."""

    def submit(self, request: Request, context: Context) -> PendingReply:
        """Hand in a request."""

    def hand_in(self, what: Input) -> None:
        """Hand in anything else that can happen."""

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition; false where other nodes have a say in that."""

    def resign(self, partition: TopicPartition) -> bool:
        """Stop leading a partition."""

    def lead_everything(self) -> None:
        """Lead every partition."""

    def go_on_with(self, node: Node, leading: dict[TopicPartition, int]) -> None:
        """Drive another node from here on."""

    async def topics_settled(self) -> None:
        """Return when every change of the topics that was wanted is stored, or refused."""


class EventFeed(Protocol):
    """The events of a node, as far as waiting for the next one goes."""

    @property
    def head(self) -> int:
        """The number of the newest event."""

    @property
    def closed(self) -> bool:
        """Whether no more will come."""

    async def wait(self, after: int) -> None:
        """Return when there is an event behind ``after``, or none will come any more."""
