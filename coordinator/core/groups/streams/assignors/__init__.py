"""Assignors of streams groups. They give tasks to members: active ones, and standbys that keep a copy of the state.

members = {"m-1": TaskMember("process-1"), ...}                     # in the order of the group
StickyTaskAssignor().assign(members, {"0": SubtopologyTasks(12)}, 0)    # {"m-1": AssignedTasks({"0": (0, 1)}, {}), ...}
"""

from rejoin.coordinator.core.groups.streams.assignors.base import (
    AssignedTasks,
    SubtopologyTasks,
    TaskAssignor,
    TaskMember,
)
from rejoin.coordinator.core.groups.streams.assignors.sticky import StickyTaskAssignor

__all__ = ["AssignedTasks", "StickyTaskAssignor", "SubtopologyTasks", "TaskAssignor", "TaskMember"]
