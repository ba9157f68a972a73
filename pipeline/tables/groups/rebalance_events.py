"""The events that rebalances are made of, as both a batch and a stream read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

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

Owners = Sequence[Mapping[str, Any]]
"""Partitions with ``topic``, ``partition`` and ``member_id``."""


class RebalanceEvent(NamedTuple):
    """The columns of an event that are looked at; those that the event does not have are none."""

    run_id: str
    group_id: str
    source: str
    node: str
    seq: int
    at_ms: int
    event: str
    file: str | None = None
    line: int | None = None
    confidence: str | None = None
    member_id: str | None = None
    generation: int | None = None
    state: str | None = None
    previous_state: str | None = None
    cause: str | None = None
    cause_member_id: str | None = None
    cause_group_instance_id: str | None = None
    client_reason: str | None = None
    initial: bool | None = None
    rebalance: bool | None = None
    leader: str | None = None
    previous_leader: str | None = None
    protocol: str | None = None
    members: list[str] | None = None
    members_before: list[str] | None = None
    absent: list[str] | None = None
    moved: int | None = None
    regained: int | None = None
    join_ms: int | None = None
    sync_ms: int | None = None
    group_type: str | None = None
    revocation_ms: int | None = None
    partitions: Sequence[Any] | None = None
    owned_before: Owners | None = None
    owned_after: Owners | None = None


READS: Final = RebalanceEvent._fields
"""Columns of events that an event must come with."""
