"""A member of a streams group: metadata (key 19) and current assignment (key 22). Both are replaced, never changed.

Kafka: StreamsGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH
from rejoin.coordinator.core.groups.streams.model.state import STATIC_LEAVE_EPOCH, StreamsMemberState
from rejoin.coordinator.core.groups.streams.model.tasks import NOTHING_HELD, HeldTasks
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from rejoin.protocol.streams.topology import UserEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberMetadata:
    """A member's identity: a stream thread of one process."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()
    """By key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTasks:
    """A member's current assignment. ``pending`` are the tasks that it must revoke before it gets others."""

    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: HeldTasks = NOTHING_HELD
    pending: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether the member has reached the target of an epoch."""
        return self.state is StreamsMemberState.STABLE and self.epoch == target_epoch


NEW_METADATA: Final = StreamsMemberMetadata()
NEW_ASSIGNMENT: Final = CurrentTasks()
RELEASED: Final = CurrentTasks(epoch=NO_EPOCH, previous_epoch=NO_EPOCH)
"""The current assignment of a member after its tombstone."""


@dataclass(slots=True)
class StreamsMember:
    """A member of a group."""

    member_id: str
    session_key: TimerKey
    number: int = field(default=0, compare=False)
    """Members of a group are numbered as they come."""
    metadata: StreamsMemberMetadata = NEW_METADATA
    current: CurrentTasks = NEW_ASSIGNMENT
    unchanged: StreamsGroupHeartbeatResponse | None = field(default=None, compare=False)
    """The answer to its heartbeats while nothing changes; none until it is wanted."""

    @property
    def is_away(self) -> bool:
        """Whether a static member has left for a moment."""
        return self.current.epoch == STATIC_LEAVE_EPOCH
