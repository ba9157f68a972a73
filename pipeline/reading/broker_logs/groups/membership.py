"""The members of a group, from the lines that coordinators wrote about them.

Names in events are those of the pipeline's events table. ``exact`` is what a line says in so many words, ``inferred``
what follows from several of them.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from rejoin.pipeline.reading.broker_logs.statements import Statement

EXACT: Final = "exact"
INFERRED: Final = "inferred"

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
)

EventRow: TypeAlias = dict[str, Any]
"""A row of the events table, less what is the same for a whole run; absent columns are null."""

UUID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The suffix with which brokers make a member id of a client's id, or of a static member's instance id."""


class Membership:
    """The members and the leader of a group, as far as the lines show them, and the events of both."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._state: str | None = None
        self._generation: int | None = None
        self._members: dict[str, str | None] = {}
        """Members that are known, with their instance ids."""
        self._complete = False
        """Whether all members are known."""
        self._handed_out: dict[str, None] = {}
        self._joins_logged = False
        """Whether these brokers log who joins; they do since 2.5."""
        self._returned: dict[str, str] = {}
        """Instance ids of static members that restarted under an id that no line has had yet, to their old ids."""
        self._leader: str | None = None
        self._leader_is_named = False
        self._stable_members: list[str] | None = None
        self._stable_leader: str | None = None
        """Members and leader when the group was last Stable."""
        self._replaced: EventRow | None = None
        self._expired: Statement | None = None
        self._removed: tuple[str | None, str | None, str | None] = (None, None, None)
        """The member that left last, its instance id, and its reason."""
        self._joined_in: tuple[str | None, str | None] = (None, None)
        self._out: list[EventRow] = []

    # --- emitting

    def _emit(self, statement: Statement, event: str, confidence: str = EXACT, **columns: Any) -> EventRow:
        row: EventRow = {
            "event": event,
            "at_ms": statement.at_ms,
            "order_ms": statement.order_ms,
            "node": statement.node,
            "file": statement.file,
            "line": statement.line,
            "confidence": confidence,
            "group_id": self.group_id,
        }
        row |= {name: value for name, value in columns.items() if value is not None}
        self._out.append(row)
        return row

    def _enter(self, statement: Statement, state: str, confidence: str = EXACT) -> None:
        before, self._state = self._state, state
        self._emit(
            statement,
            "group_state_changed",
            confidence,
            previous_state=before,
            state=state,
            generation=self._generation,
        )

    def _known_members(self) -> list[str] | None:
        return list(self._members) if self._complete else None

    # --- members

    def _add(
        self,
        statement: Statement,
        member: str,
        instance: str | None,
        confidence: str,
        state: str | None,
        client_reason: str | None = None,
        **columns: Any,
    ) -> None:
        self._handed_out.pop(member, None)
        self._members[member] = instance
        client = UUID.sub("", member) if instance is None and UUID.search(member) else None
        self._emit(
            statement,
            "member_joined",
            confidence,
            member_id=member,
            group_instance_id=instance,
            client_id=client,
            state=state,
            client_reason=client_reason,
            **columns,
        )

    def _remove(
        self,
        statement: Statement,
        member: str,
        cause: str,
        confidence: str,
        state: str | None,
        client_reason: str | None = None,
        **columns: Any,
    ) -> None:
        instance = self._instance_of(member) or columns.pop("instance", None)
        columns.pop("instance", None)
        self._removed = (member, instance, client_reason)
        if member in self._members:
            del self._members[member]
        elif instance is not None and instance in self._returned:
            self._members.pop(self._returned.pop(instance), None)
        elif self._complete:
            self._complete = False
        self._handed_out.pop(member, None)
        if "client_id" not in columns and instance is None and UUID.search(member):
            columns["client_id"] = UUID.sub("", member)
        self._emit(
            statement,
            "member_removed",
            confidence,
            member_id=member,
            group_instance_id=instance,
            cause=cause,
            state=state,
            client_reason=client_reason,
            **columns,
        )
        if self._leader == member and self._state != EMPTY:
            # Kafka: another member leads at once; a line names it only with its assignment.
            self._leader, self._leader_is_named = None, False

    def _instance_of(self, member: str) -> str | None:
        instance = self._members.get(member)
        if instance is None and self._removed[0] == member:
            return self._removed[1]
        if instance is None:
            bare = UUID.sub("", member)
            # Kafka: the id of a static member begins with its instance id.
            if bare != member and (bare in self._returned or bare in self._members.values()):
                return bare
        return instance

    def _on_id_handed_out(self, statement: Statement, confidence: str = EXACT) -> None:
        member, state = statement.values["member"], statement.values["state"]
        self._see_state(statement, state)
        self._joins_logged = True
        self._handed_out[member] = None
        client = UUID.sub("", member) if UUID.search(member) else None
        self._emit(statement, "member_id_handed_out", confidence, member_id=member, client_id=client)

    def _on_id_created(self, statement: Statement) -> None:
        self._on_id_handed_out(statement, INFERRED)

    def _on_joined(self, statement: Statement) -> None:
        member, state = statement.values["member"], statement.values.get("state")
        self._joins_logged = True
        if state is not None:
            self._see_state(statement, state)
        instance = statement.values.get("instance")
        if (state or self._state) == EMPTY and not self._members:
            self._leader, self._leader_is_named = member, False
        if (state or self._state) == EMPTY:
            self._complete = True
        self._add(statement, member, instance, EXACT, state or self._state)
        self._joined_in = (member, state)

    def _see_state(self, statement: Statement, state: str) -> None:
        """A line about something else names the state."""
        if self._state is None:
            self._state = state
            if state == EMPTY:
                self._members, self._complete = {}, True
                if self._generation is None:
                    self._emit(statement, "group_created", INFERRED, offsets_partition=statement.partition)

    def _on_failed(self, statement: Statement) -> None:
        self._expired = statement
        self._remove(statement, statement.values["member"], "session-expiry", EXACT, self._state)

    def _on_left(self, statement: Statement) -> None:
        values = statement.values
        more = {name: values.get(name) for name in ("client_id", "client_host", "instance", "protocols")}
        for name in ("session_timeout_ms", "rebalance_timeout_ms"):
            more[name] = int(values[name]) if name in values else None
        known = {name: value for name, value in more.items() if value is not None}
        self._remove(statement, values["member"], "left", EXACT, self._state, values.get("client_reason"), **known)

    def _on_pending_left(self, statement: Statement) -> None:
        self._handed_out.pop(statement.values["member"], None)
        self._emit(
            statement,
            "pending_member_removed",
            member_id=statement.values["member"],
            cause="left",
            client_reason=statement.values.get("client_reason"),
        )

    def _on_pending_expired(self, statement: Statement) -> None:
        member = statement.values["member"]
        self._handed_out.pop(member, None)
        self._emit(statement, "pending_member_removed", member_id=member, cause="session-expiry")

    def _on_leader_replaced(self, statement: Statement) -> None:
        old, new = statement.values["old"], statement.values.get("member")
        self._leader, self._leader_is_named = new, new is not None
        self._emit(statement, "leader_changed", previous_leader=old, leader=new)

    def _on_fenced(self, statement: Statement) -> None:
        values = statement.values
        current, instance = values["current"], values.get("instance")
        if instance is not None and instance in self._returned:
            self._rename(self._returned.pop(instance), current, instance)
        self._emit(
            statement,
            "member_fenced",
            member_id=values["member"],
            group_instance_id=instance,
            other_member_id=current,
            api=values.get("operation"),
        )

    # --- static members

    def _on_replaced(self, statement: Statement) -> None:
        values = statement.values
        old, new, instance = values["old"], values.get("member"), values["instance"]
        state = values.get("state") or self._state
        self._rename(old, new, instance)
        self._replaced = self._emit(
            statement,
            "static_member_replaced",
            EXACT if new is not None and "guessed" not in values else INFERRED,
            group_instance_id=instance,
            other_member_id=old,
            member_id=new,
            state=state,
            rebalance=False if state in (PREPARING, EMPTY) else None,
        )

    def _rename(self, old: str, new: str | None, instance: str) -> None:
        """A static member has another id; until a line has it, the member keeps its place under the old one."""
        if new is None:
            self._returned[instance] = old
            if old not in self._members and not self._complete:
                self._members[old] = instance
            return
        self._returned.pop(instance, None)
        if old in self._members:
            self._members = {
                (new if each == old else each): (instance if each == old else how)
                for each, how in self._members.items()
            }
        elif not self._complete:
            self._members[new] = instance
        if self._stable_members is not None:
            self._stable_members = [new if each == old else each for each in self._stable_members]
        if self._leader == old:
            self._leader = new
        if self._stable_leader == old:
            self._stable_leader = new

    def _attach_static(self, cause: dict[str, Any]) -> None:
        """A rebalance caused by a static member's restart has its new id."""
        replaced, self._replaced = self._replaced, None
        if replaced is None:
            return
        member = cause["cause_member_id"]
        ours = (
            cause["cause_group_instance_id"] == replaced.get("group_instance_id")
            or (member is not None and member == replaced.get("member_id"))
            or (member is not None and UUID.sub("", member) == replaced.get("group_instance_id"))
        )
        replaced["rebalance"] = ours
        if ours and member is not None and "member_id" not in replaced:
            replaced["member_id"] = member
            self._rename(replaced["other_member_id"], member, replaced["group_instance_id"])
        if ours and cause["cause"] == "rejoin-metadata":
            # Kafka: before 2.5 the reason is the same as for dynamic members.
            cause["cause"] = "static-metadata"
            cause["cause_group_instance_id"] = replaced["group_instance_id"]

    def _on_no_rebalance(self, statement: Statement) -> None:
        if self._replaced is not None:
            self._replaced["rebalance"] = False
            self._replaced.setdefault("state", STABLE)
            self._replaced = None

    def _release_static(self) -> None:
        self._replaced = None

    def _on_restored(self, statement: Statement) -> None:
        values = statement.values
        self._rename(values["refused"], values["member"], values["instance"])
        self._emit(
            statement,
            "static_member_restored",
            group_instance_id=values["instance"],
            member_id=values["member"],
            other_member_id=values["refused"],
            problem=values["error"],
        )
