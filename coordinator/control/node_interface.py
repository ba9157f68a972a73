"""Interface of the node that the control needs: the service's runtime and its feed of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker, Context, Input, Millis, Token
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView, LogSlice, OffsetView, ShareStateView, TimerView, TopicView
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.protocol.brokers.listener_address import ListenerAddress
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.types import TopicPartition


class ControlledNode(Protocol):
    """Views of a node's core, or of all cores in one process."""

    @property
    def settings(self) -> Settings:
        """Its settings."""

    def topic_named(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""

    def next_deadline(self) -> Millis | None:
        """When the first timer fires, or none."""

    def due(self, now: Millis) -> list[TimerView]:
        """The timers that fire at an instant or before."""

    def group_ids(self) -> list[str]:
        """Every group."""

    def describe_group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator sees it, or none."""

    def summarize_group(self, group_id: str) -> GroupView | None:
        """A group in short, for callers that look at it often; or none."""

    def describe_offsets(self, group_id: str, now: Millis) -> list[OffsetView]:
        """The committed offsets of a group."""

    def share_state(self, group_id: str, topic: str, partition: int, now: Millis) -> ShareStateView | None:
        """A share-partition as its leader sees it, or none."""

    def share_states(self, group_id: str, now: Millis) -> list[ShareStateView]:
        """The share-partitions of a group as their leaders see them, by topic and partition."""

    def describe_topics(self, now: Millis) -> list[TopicView]:
        """Every topic, by name."""

    def compacted_topics(self) -> list[str]:
        """The topics whose logs are compacted, by name."""

    def read_log(self, topic: str, partition: int, offset: int, max_bytes: int, now: Millis) -> LogSlice | ErrorCode:
        """The batches of a partition from an offset on, or why they cannot be read."""

    def waiting(self) -> list[Token]:
        """The token of every request that is parked."""

    def copy(self, instead: Callable[[Token], Token]) -> Node:
        """A node of its own in the state of this one, with another token for each that waits."""


class RequestTarget(Protocol):
    """A broker that takes requests."""

    broker: Broker

    @property
    def node(self) -> ControlledNode:
        """Its core."""

    def submit(self, request: Request, context: Context) -> PendingReply:
        """Hand in a request."""

    def hand_in(self, what: Input) -> None:
        """Hand in anything else that can happen."""


class ControlledService(Protocol):
    """Surroundings of the runtime: its listeners, and the topics of the start."""

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients connect; empty without a listener for them."""

    @property
    def endpoints(self) -> tuple[ListenerAddress, ...]:
        """The listeners of Kafka's protocol, each with the address that it advertises."""

    def advertise(self, address: ListenerAddress) -> bool:
        """Send clients of a listener to another address; false where a node is not the only one."""

    async def create_initial_topics(self) -> None:
        """Create the topics that are there from the beginning."""


class ControlledRuntime(RequestTarget, Protocol):
    """A node at work, or all that are in one process."""

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The offsets partitions led, each with its epoch."""

    def target_of(self, request: Request, version: int) -> RequestTarget:
        """The broker that serves a request."""

    def broker_named(self, node_id: int) -> RequestTarget:
        """A broker by its id. Raises ``ValueError`` where there is none."""

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition; false where other nodes have a say in that."""

    def resign(self, partition: TopicPartition) -> bool:
        """Stop leading a partition."""

    def lead_everything(self) -> None:
        """Lead every partition."""

    def go_on_with(self, node: Node, leading: dict[TopicPartition, int]) -> None:
        """Drive another node from here on."""

    async def topics_stored(self) -> None:
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
