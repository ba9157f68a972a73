"""A member of a classic group, and what waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.classic.subscriptions import topics_of
from rejoin.coordinator.core.groups.timers import session_timer
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.records.consumer_offsets import MemberMetadata
from rejoin.protocol.types import TopicPartition

Protocols = tuple[JoinGroupRequestProtocol, ...]
"""Assignor names with metadata, in the member's order of preference."""

CONSUMER_PROTOCOL_TYPE = "consumer"


@dataclass(slots=True, frozen=True)
class ParkedJoin:
    """A JoinGroup that waits for the join phase to end."""

    token: Token
    version: int


@dataclass(slots=True)
class Member:
    """A member. Timeouts are ms. ``parked_join`` and ``parked_sync`` are the requests that it waits with, if any."""

    group_id: str
    partition: TopicPartition
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    parked_join: ParkedJoin | None = None
    parked_sync: Token | None = None
    session_key: TimerKey = field(init=False)
    _stored: MemberMetadata | None = field(init=False, default=None, repr=False, compare=False)
    _stored_of: tuple[object, ...] = field(init=False, default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        self.session_key = session_timer(self.partition, self.group_id, self.member_id)

    @classmethod
    def joining(cls, request: JoinGroupRequest, context: Context, partition: TopicPartition, member_id: str) -> Member:
        """The member that this request would make."""
        return cls(
            group_id=request.group_id,
            partition=partition,
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_of(request, context),
            protocols=request.protocols,
            is_new=True,
        )

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether a parked request stands in for heartbeats. A new member's does not: it has the join timeout."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def protocol_names(self) -> list[str]:
        return list(names_of(self.protocols))

    def metadata_for(self, protocol_name: str) -> bytes:
        """The member's metadata for one protocol; empty when the member does not list it."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    def stored(self, protocol_name: str, assignment: bytes) -> MemberMetadata:
        """This member as its group's record has it, with an assignment. The same object as long as nothing differs."""
        # A group of thousands is stored whole for each static member that comes back, and hardly anything has changed.
        made_of = (assignment, protocol_name, self.protocols, self.session_timeout_ms, self.rebalance_timeout_ms)
        stored = self._stored
        if stored is None or made_of != self._stored_of:
            self._stored_of = made_of
            stored = self._stored = MemberMetadata(
                member_id=self.member_id,
                group_instance_id=self.group_instance_id,
                client_id=self.client_id,
                client_host=self.client_host,
                rebalance_timeout=self.rebalance_timeout_ms,
                session_timeout=self.session_timeout_ms,
                subscription=self.metadata_for(protocol_name),
                assignment=assignment,
            )
        return stored

    def topics(self, protocol_name: str | None) -> list[str] | None:
        """The topics it subscribes to, as far as they can be read: by one protocol, or by its first."""
        metadata = self.metadata_for(protocol_name) if protocol_name else b""
        if not metadata and self.protocols:
            metadata = self.protocols[0].metadata
        topics = topics_of(metadata)
        return None if topics is None else list(topics)


def names_of(protocols: Protocols) -> tuple[str, ...]:
    """The assignors' names alone."""
    return tuple(protocol.name for protocol in protocols)


def rebalance_timeout_of(request: JoinGroupRequest, context: Context) -> int:
    """The rebalance timeout in ms. Kafka: JoinGroup v0 has none, and the session timeout serves as it."""
    return request.session_timeout_ms if context.api_version == 0 else request.rebalance_timeout_ms
