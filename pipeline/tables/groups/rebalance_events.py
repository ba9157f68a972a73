"""The events that rebalances are made of, and their columns."""

from __future__ import annotations

from typing import Final

COMPLETED: Final = "completed"
SUPERSEDED: Final = "superseded"
EMPTIED: Final = "emptied"
ABORTED: Final = "aborted"
OPEN: Final = "open"

JOINS: Final = ("member_joined", "member_rejoined", "static_member_replaced")
MEMBERSHIP: Final = (*JOINS, "member_removed")
TARGETS: Final = ("join_phase_ended", "target_assignment_computed")
ENDS: Final = {
    "rebalance_completed": COMPLETED,
    "group_emptied": EMPTIED,
    "group_loaded": ABORTED,
    "group_created": ABORTED,
    "group_deleted": ABORTED,
    "group_state_changed": ABORTED,
}
"""Events that end a rebalance, with the outcome; of changes of state, that to Dead."""
GATHERING: Final = ("PreparingRebalance", "Assigning")
"""States in which members that come and go belong to the rebalance that goes on."""
HANDING_OUT: Final = ("CompletingRebalance", "Reconciling")
"""States of a group that is not yet done with a rebalance when the next one begins."""
FOLLOWED: Final = (
    *MEMBERSHIP,
    *TARGETS,
    *ENDS,
    "rebalance_started",
    "member_reconciled",
    "revocation_completed",
    "assignment_received",
)
"""The events that change something."""

READS: Final = (
    *("run_id", "group_id", "source", "node", "seq", "at_ms", "event"),
    *("file", "line", "confidence", "member_id", "generation", "state", "previous_state", "cause", "cause_member_id"),
    *("cause_group_instance_id", "client_reason", "initial", "rebalance", "leader", "previous_leader", "protocol"),
    *("members", "members_before", "absent", "moved", "regained", "join_ms", "sync_ms", "group_type"),
    *("revocation_ms", "partitions", "owned_before", "owned_after"),
)
"""Columns of these events from which rebalances are made."""
