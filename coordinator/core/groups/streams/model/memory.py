"""State of a streams group that is in no record: another coordinator begins without it.

Kafka: the first heartbeat of a group works on a group that is thrown away, and so on a memory that is thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rejoin.coordinator.core.groups.streams.model.tasks import Tasks
from rejoin.coordinator.core.groups.streams.topology.configured import ConfiguredTopology

TaskOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""By subtopology, by task: the sum of the offsets of its changelogs."""


@dataclass(slots=True)
class RefinedTargets:
    """The targets that members are led to, as they were when the first heartbeat of an epoch asked for them.

    Kafka: meant for warm-up tasks, of which 4.4 gives none. It is not touched when a member leaves, so one that comes
    back under its id before the next target gets its old tasks.
    """

    epoch: int = -1
    targets: dict[str, Tasks] = field(default_factory=dict)


@dataclass(slots=True)
class GroupMemory:
    """State that is lost with its coordinator."""

    configured: ConfiguredTopology | None = None
    refined: RefinedTargets = field(default_factory=RefinedTargets)
    endpoint_epoch: int = 0
    """Grows whenever the partitions behind an endpoint may have changed."""
    shutdown_requested_by: str | None = None
    """The first member that asked for the end of the application."""
    offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    """By member: how far each task's state is restored."""
    end_offsets: dict[str, TaskOffsets] = field(default_factory=dict)

    def forget(self, member_id: str) -> None:
        """A member is gone."""
        self.offsets.pop(member_id, None)
        self.end_offsets.pop(member_id, None)
