"""Server-side assignors: they compute the target assignment of a consumer group (KIP-848).

members = {"m-1": AssignorMember(topic_ids=(orders,)), ...}         # in the order of the group
assignor.assign(members, {orders: 12}, SubscriptionKind.HOMOGENEOUS)    # {"m-1": {orders: [0, 1, 2]}, ...}
"""

from rejoin.coordinator.core.groups.consumer.assignors.base import (
    Assignments,
    AssignorMember,
    ServerAssignor,
    SubscriptionKind,
)
from rejoin.coordinator.core.groups.consumer.assignors.registry import UnknownServerAssignor, assignors_of

__all__ = [
    "Assignments",
    "AssignorMember",
    "ServerAssignor",
    "SubscriptionKind",
    "UnknownServerAssignor",
    "assignors_of",
]
