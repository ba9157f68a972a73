"""A member of a consumer group: metadata (key 5) and current assignment (key 8). Both are replaced, never changed.

Kafka: ConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.groups.consumer.model.state import STATIC_LEAVE_EPOCH, ConsumerMemberState
from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH, PartitionsByTopicId
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

PartitionEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""By topic id, by partition: the epoch of the member at which it got the partition."""

NO_PARTITIONS: Final[PartitionEpochs] = {}


class SupportedProtocol(NamedTuple):
    """An assignor that a classic member supports, with its subscription for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """State of a member that speaks JoinGroup and SyncGroup."""

    session_timeout_ms: int
    protocols: tuple[SupportedProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberMetadata:
    """A member's identity and subscription."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignment:
    """A member's current assignment. ``pending`` are the partitions that it must revoke before it gets others."""

    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    pending: PartitionEpochs = field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether the member has reached the target of an epoch."""
        return self.state is ConsumerMemberState.STABLE and self.epoch == target_epoch


NEW_METADATA: Final = ConsumerMemberMetadata()
NEW_ASSIGNMENT: Final = CurrentAssignment()
RELEASED: Final = CurrentAssignment(epoch=NO_EPOCH)
"""The current assignment of a member after its tombstone."""


@dataclass(slots=True)
class ConsumerMember:
    """A member of a group."""

    member_id: str
    session_key: TimerKey
    number: int = field(default=0, compare=False)
    """Members of a group are numbered as they come."""
    metadata: ConsumerMemberMetadata = NEW_METADATA
    current: CurrentAssignment = NEW_ASSIGNMENT
    unchanged: ConsumerGroupHeartbeatResponse | None = None
    """The answer to its heartbeats while nothing changes."""

    @property
    def is_classic(self) -> bool:
        """Whether the member speaks the classic protocol."""
        return self.metadata.classic is not None

    @property
    def is_static(self) -> bool:
        return self.metadata.instance_id is not None

    @property
    def is_away(self) -> bool:
        """Whether a static member has left for a moment."""
        return self.current.epoch == STATIC_LEAVE_EPOCH


def same_partitions(epochs: PartitionEpochs) -> PartitionsByTopicId:
    """The partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in epochs.items()}
