"""A node with a topic of four partitions, and members that send heartbeats of the consumer protocol to it."""

from __future__ import annotations

from typing import Any

from rejoin.journal.events.base import Event
from rejoin.journal.formatting import format_event
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    OwnedTopicPartitions,
)
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from tests.coordinator.core.driver import GROUP, DrivenNode, topic

ORDERS = "orders"


class ConsumerNode(DrivenNode):
    """A node with the topic ``orders``. Targets are computed at once, unless settings say otherwise."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"group_consumer_assignment_interval_ms": 0} | settings)
        self.ask(CreateTopicsRequest(topics=(topic(ORDERS, 4),)), 7, principal="User:setup")
        self.seen = len(self.events)

    def heartbeat(self, member_id: str, epoch: int, *owned: int, **given: Any) -> Any:
        """A heartbeat; it says what the member owns if that is given, or if it joins."""
        joins: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": (ORDERS,)}
        fields = (joins if epoch == 0 else {}) | given
        if owned or epoch == 0:
            topic_id = self.node._topics.id_of(ORDERS)
            held = (OwnedTopicPartitions(topic_id=topic_id, partitions=owned),) if owned else ()
            fields = {"topic_partitions": held} | fields
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        return self.ask(request, 1)

    def classic_members(self, count: int, assignments: tuple[bytes, ...], metadata: bytes) -> list[str]:
        """A Stable classic group of so many members, by their ids."""
        protocols = (JoinGroupRequestProtocol(name="range", metadata=metadata),)
        numbers = [self.send(self.join_request(protocols), 5) for _ in range(count)]
        ids = [self.replies[number].member_id for number in numbers]  # type: ignore[attr-defined]
        joins = [self.send(self.join_request(protocols, member_id), 5) for member_id in ids]
        self.elapse(6_000)
        generation = self.replies[joins[0]].generation_id  # type: ignore[attr-defined]
        given = tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in zip(ids, assignments, strict=True)
        )
        for member_id in ids:
            entries = given if member_id == self.replies[joins[0]].leader else ()  # type: ignore[attr-defined]
            self.send(
                SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member_id, assignments=entries), 3
            )
        return ids

    def join_request(self, protocols: tuple[JoinGroupRequestProtocol, ...], member_id: str = "") -> Any:
        """A JoinGroup of a classic member."""
        return JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )

    def new_events(self) -> list[str]:
        """The events since this was asked last, as text, without the name of the group."""
        new: list[Event] = self.events[self.seen :]
        self.seen = len(self.events)
        return [format_event(event).removeprefix(f"{GROUP}  ") for event in new]
