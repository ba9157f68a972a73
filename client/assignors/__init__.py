"""Assignors: which member reads which partition. Kafka's four, and the interface for your own."""

from rejoin.client.assignors.base import (
    Assignments,
    Assignor,
    ClusterView,
    MemberSubscription,
    Partition,
    RebalanceProtocol,
)
from rejoin.client.assignors.checks import BadAssignment, check_assignment, run_assignor
from rejoin.client.assignors.registry import UnknownAssignor, assignor_named, assignor_names

__all__ = [
    "Assignments",
    "Assignor",
    "BadAssignment",
    "ClusterView",
    "MemberSubscription",
    "Partition",
    "RebalanceProtocol",
    "UnknownAssignor",
    "assignor_named",
    "assignor_names",
    "check_assignment",
    "run_assignor",
]
