"""The rebalances of one group from the lines of its coordinators: causes, join phases, assignments.

Some is concluded: rejoins and stored assignments are never logged, and older brokers log less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.groups.membership import (
    COMPLETING,
    DEAD,
    EMPTY,
    EXACT,
    INFERRED,
    PREPARING,
    STABLE,
    UUID,
    EventRow,
)
from rejoin.pipeline.reading.broker_logs.groups.modern_groups import ModernGroups
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN
from rejoin.pipeline.reading.broker_logs.statements import Statement

AT_ONCE_MS: Final = 50
"""Upper bound of the time in which the effects of one request or timer are logged."""

_STATE_OF_A_CAUSE: Final = {
    "store-failure": COMPLETING,
    "static-metadata": COMPLETING,
    "static-protocol": STABLE,
    "rejoin-leader": STABLE,
}
"""The state in which a rebalance for this cause begins, where only one is possible."""


@dataclass(slots=True)
class _Episode:
    """From the first PREPARE since Stable or Empty until the group is either again."""

    began: Statement
    cause: dict[str, Any]
    attempts: int = 1
    attempt_began: Statement | None = None
    join_ended: Statement | None = None
    join_event: EventRow | None = None
    assigned: Statement | None = None
    assigned_event: EventRow | None = None
    not_yet_stable: Statement | None = None
    did_not_join: list[str] = field(default_factory=list)


class Rebalances(ModernGroups):
    """Follows the rebalances of one group."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self._episode: _Episode | None = None
        self._node: str | None = None

    def _on_preparing(self, statement: Statement) -> None:
        values = statement.values
        self._generation = int(values["generation"])
        cause = {
            "cause": values.get("cause", UNKNOWN),
            "cause_member_id": values.get("member"),
            "cause_group_instance_id": values.get("instance"),
            "client_reason": values.get("client_reason"),
        }
        before = self._state_before(statement, cause["cause"])
        confidence = EXACT
        if "reason" not in values:
            confidence = self._guess_cause(statement, cause, before)
        self._node = statement.node
        self._attach_static(cause)
        self._take_in(statement, cause, before)
        if cause["cause"] == "rejoin-metadata" and values.get("state_before") is None:
            # Kafka: before 2.8 a leader that rejoins is said to update its metadata, whether they changed or not.
            confidence = INFERRED
            if cause["cause_member_id"] == self._leader and before == STABLE:
                cause["cause"] = "rejoin-leader"
        member = cause["cause_member_id"]
        if member is not None and cause["cause_group_instance_id"] is None:
            cause["cause_group_instance_id"] = self._instance_of(member)
        if cause["cause"] == "leave" and cause["client_reason"] is None and self._removed[0] in _named_in(statement):
            # Kafka: the coordinator in Java prints the client's words where it says that the member left.
            cause["client_reason"] = self._removed[2]
        if before is None:
            confidence = INFERRED
        self._state = before
        if before == EMPTY:
            self._stable_members, self._stable_leader = [], None
        self._enter(statement, PREPARING, EXACT if before is not None else INFERRED)
        self._emit(
            statement,
            "rebalance_started",
            confidence,
            generation=self._generation,
            previous_state=before,
            initial=None if before is None else before == EMPTY,
            members=self._known_members(),
            reason=values.get("reason"),
            offsets_partition=statement.partition,
            error=values.get("error"),
            **cause,
        )
        if self._episode is None or before in (STABLE, EMPTY):
            self._episode = _Episode(statement, cause)
        else:
            self._episode.attempts += 1
            self._episode.join_ended = self._episode.join_event = None
            self._episode.assigned = self._episode.assigned_event = None
        self._episode.attempt_began = statement
        self._episode.did_not_join = []

    def _state_before(self, statement: Statement, cause: str) -> str | None:
        state = statement.values.get("state_before") or _STATE_OF_A_CAUSE.get(cause)
        if state is not None and state != PREPARING:
            return str(state)
        if self._state is None and self._generation == 0:
            return EMPTY
        if self._state in (PREPARING, DEAD):
            # Kafka: no rebalance begins in these states, so lines are missing in between.
            return None
        return self._state

    def _guess_cause(self, statement: Statement, cause: dict[str, Any], before: str | None) -> str:
        """Kafka before 2.2 prints no reason: an expired session is logged just before, and an empty group is joined."""
        expired = self._expired
        if expired is not None and abs(statement.at_ms - expired.at_ms) <= AT_ONCE_MS:
            cause |= {"cause": "session-expiry", "cause_member_id": expired.values.get("member")}
        elif before == EMPTY:
            cause["cause"] = "join-new"
        return INFERRED

    def _take_in(self, statement: Statement, cause: dict[str, Any], before: str | None) -> None:
        """Update the members from a rebalance's cause."""
        member, named = cause["cause_member_id"], statement.values.get("members_named") or []
        if before == EMPTY:
            self._complete = True
        if cause["cause"] == "join-new" and member is not None:
            if member not in self._members:
                self._add(statement, member, cause["cause_group_instance_id"], INFERRED, before, cause["client_reason"])
            if before == EMPTY:
                self._leader, self._leader_is_named = member, False
        elif cause["cause"] == "sync-expiry":
            for each in named:
                self._remove(statement, each, "sync-expiry", INFERRED, before)
        elif cause["cause"] in ("leave", "session-expiry"):
            # Pending members are named, too, and an older broker may not have said that a member left.
            for each in named:
                self._handed_out.pop(each, None)
                if each in self._members:
                    kind = "left" if cause["cause"] == "leave" else "session-expiry"
                    self._remove(statement, each, kind, INFERRED, before, cause["client_reason"])
        elif member is not None and member not in self._members:
            self._members[member] = cause["cause_group_instance_id"]

    def _on_stabilized(self, statement: Statement) -> None:
        values = statement.values
        self._generation = int(values["generation"])
        count = int(values["members"]) if "members" in values else None
        if self._state is None:
            self._state = PREPARING
        self._reckon(statement, count)
        episode = self._episode
        did_not_join = episode.did_not_join if episode is not None else []
        if self._complete and self._leader not in self._members:
            self._leader, self._leader_is_named = None, False
        if self._complete and self._leader is None and len(self._members) == 1:
            self._leader, self._leader_is_named = next(iter(self._members)), False
        self._enter(statement, COMPLETING)
        emitted = self._emit(
            statement,
            "join_phase_ended",
            # Before 2.8 no line has the number of members, so the members are concluded.
            EXACT if count is not None else INFERRED,
            generation=self._generation,
            leader=self._leader,
            members=self._known_members(),
            member_count=count if count is not None else len(self._members) if self._complete else None,
            did_not_rejoin=did_not_join or None,
            offsets_partition=statement.partition,
            join_ms=statement.order_ms - episode.attempt_began.order_ms
            if episode is not None and episode.attempt_began is not None
            else None,
        )
        if episode is not None:
            episode.join_ended, episode.join_event = statement, emitted
            episode.assigned = episode.assigned_event = None

    def _reckon(self, statement: Statement, count: int | None) -> None:
        """The members of a generation, from those that are known and those that were given an id."""
        if count is None:
            # No line has their number: ids that were handed out are mostly used at once.
            for member in list(self._handed_out):
                self._add(statement, member, None, INFERRED, PREPARING)
            self._complete = self._complete and self._joins_logged
            return
        missing = count - len(self._members)
        if 0 < missing <= len(self._handed_out):
            for member in self._likely_used(missing):
                self._add(statement, member, None, INFERRED, PREPARING)
        if count == len(self._members):
            self._complete = True
        elif count < len(self._members):
            # A member has left without a line, as before 2.7 those that do not rejoin.
            self._complete = False
            self._members = {each: how for each, how in self._members.items() if each == self._leader}
        else:
            self._complete = False

    def _likely_used(self, count: int) -> list[str]:
        """Which of the ids that were handed out became members: the latest of each client, the earlier ones first."""
        latest = {UUID.sub("", member): member for member in self._handed_out}
        used = [member for member in self._handed_out if latest[UUID.sub("", member)] == member]
        if len(used) < count:
            used = list(self._handed_out)
        return used[:count]

    def _on_assigned(self, statement: Statement) -> None:
        values, episode = statement.values, self._episode
        self._generation = int(values["generation"])
        leader = values.get("leader")
        if leader is not None:
            self._change_leader(statement, leader)
            if leader not in self._members and not self._complete:
                self._members[leader] = None
        if episode is None:
            # The logs begin in the midst of it.
            episode = self._episode = _Episode(statement, {"cause": UNKNOWN})
        if self._state is None:
            self._state = COMPLETING
        count = values.get("members")
        static = values.get("static_members")
        if episode.join_event is not None and self._leader is not None:
            episode.join_event["leader"] = self._leader
        episode.assigned_event = self._emit(
            statement,
            "assignment_received",
            generation=self._generation,
            leader=leader or self._leader,
            member_count=int(count) if count is not None else None,
            static_member_count=int(static) if static is not None else None,
            without_assignment=[] if count is not None else None,
        )
        episode.assigned = statement

    def _change_leader(self, statement: Statement, leader: str) -> None:
        if self._leader_is_named and self._leader not in (None, leader):
            self._emit(statement, "leader_changed", INFERRED, previous_leader=self._leader, leader=leader)
        self._leader, self._leader_is_named = leader, True

    def _on_without_assignment(self, statement: Statement) -> None:
        episode = self._episode
        if episode is not None and episode.assigned_event is not None:
            episode.assigned_event["without_assignment"] = statement.values["members_named"]

    def _settle_before(self, statement: Statement) -> None:
        """Decide whether the assignment was stored before this statement."""
        if statement.kind in ("without_assignment", "remark"):
            return
        values = statement.values
        if statement.kind == "preparing":
            state = values.get("state_before")
            if values.get("cause") in ("store-failure", "static-metadata") or state == COMPLETING:
                return
            if values.get("cause") == "join-new" and self._joined_in == (values.get("member"), COMPLETING):
                return
        elif (
            statement.kind in ("joined", "replaced", "id_handed_out", "id_created")
            and values.get("state") == COMPLETING
        ):
            assert self._episode is not None, "a rebalance completes with its assignment"
            self._episode.not_yet_stable = statement
            return
        elif statement.kind in ("unloading", "loading", "loaded_classic") and self._episode is not None:
            # A coordinator that goes takes what is not stored with it; what was received long before is stored.
            assert self._episode.assigned is not None, "a rebalance completes with its assignment"
            if statement.order_ms - self._episode.assigned.order_ms <= AT_ONCE_MS:
                return
        self._complete_rebalance()

    def _complete_rebalance(self) -> None:
        """The group is Stable since about when the assignment came: when it was stored is not logged."""
        episode = self._episode
        assert episode is not None, "a rebalance completes with its assignment"
        assert episode.assigned is not None, "a rebalance completes with its assignment"
        statement, self._episode = episode.not_yet_stable or episode.assigned, None
        later: list[EventRow] = []
        if episode.not_yet_stable is None:
            later, self._out = _split(self._out, episode.assigned_event)
        self._enter(statement, STABLE, INFERRED)
        known = episode.cause.get("cause") != UNKNOWN or episode.began.kind == "preparing"
        began = episode.began.order_ms if known else None
        attempt, ended = episode.attempt_began, episode.join_ended
        previous = self._stable_leader
        members = self._known_members()
        self._emit(
            statement,
            "rebalance_completed",
            INFERRED,
            generation=self._generation,
            attempts=episode.attempts,
            rebalance_ms=statement.order_ms - began if began is not None else None,
            join_ms=ended.order_ms - attempt.order_ms if ended is not None and attempt is not None else None,
            sync_ms=statement.order_ms - ended.order_ms if ended is not None else None,
            leader=self._leader,
            previous_leader=previous,
            members_before=self._stable_members,
            members=members,
            member_count=len(members) if members is not None else None,
            offsets_partition=statement.partition,
            **{name: value for name, value in episode.cause.items() if known},
        )
        self._stable_members, self._stable_leader = members, self._leader
        self._out += later

    def _on_nobody_joined(self, statement: Statement) -> None:
        self._emit(statement, "join_phase_repeated", members=self._known_members())

    def _on_did_not_join(self, statement: Statement) -> None:
        for member in statement.values["members_named"]:
            self._remove(statement, member, "did-not-rejoin", EXACT, PREPARING)
            if self._episode is not None:
                self._episode.did_not_join.append(member)


def _named_in(statement: Statement) -> list[str]:
    named: list[str] = statement.values.get("members_named") or []
    return named


def _split(events: list[EventRow], behind: EventRow | None) -> tuple[list[EventRow], list[EventRow]]:
    """Events behind a certain one, and those up to it."""
    for index in range(len(events) - 1, -1, -1):
        if events[index] is behind:
            return events[index + 1 :], events[: index + 1]
    return [], events
