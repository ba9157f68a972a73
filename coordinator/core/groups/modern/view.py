"""Fields that views of all kinds of groups with epochs have alike."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.groups.timers import named_deadlines
from rejoin.coordinator.core.runtime.timers import Deadlines


def group_fields(group: Any, assignor: str, deadlines: Deadlines) -> dict[str, Any]:
    """A group whose coordinator assigns, without members and topics. No request is parked, and no member leads."""
    return {
        "group_id": group.group_id,
        "partition": group.partition.partition,
        "state": group.state,
        "previous_state": group.previous_state,
        "state_since": group.state_since,
        "generation": group.epoch,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "protocol_type": group.protocol_type,
        "protocol": assignor,
        "leader": None,
        "pending_members": [],
        "pending_sync": [],
        "new_member_added": False,
        "deadlines": named_deadlines(group.partition, group.group_id, deadlines),
    }
