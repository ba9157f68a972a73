"""A group's history from the lines that coordinators logged about it, as the events that a journal would have.

There are fewer lines than events: rejoins and stored assignments are never logged, and older brokers log less. What
follows from several lines has confidence ``inferred``, what one line says literally ``exact``; the rest is null. Events
are those of ``journal.events.coordinator``, with the columns of the pipeline's events table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.groups.membership import (
    COMPLETING,
    EMPTY,
    EXACT,
    INFERRED,
    PREPARING,
    STABLE,
    EventRow,
)
from rejoin.pipeline.reading.broker_logs.groups.rebalances import Rebalances
from rejoin.pipeline.reading.broker_logs.statements import Statement

MOST_PENDING: Final = 10_000
"""Events that are kept back at the most, however long a rebalance lasts."""


class LogHistory(Rebalances):
    """Follows one group. Statements go in by their order; an event comes out when nothing can change it any more."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self._dead: EventRow | None = None
        self._trigger: dict[str, Any] | None = None
        self.repeated = 0
        self._seen: dict[tuple[str, int, str], None] = {}
        self._do: dict[str, Callable[[Statement], None]] = {
            name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }

    def take(self, statement: Statement) -> list[EventRow]:
        """Take a statement in; returns the events that later lines cannot change."""
        if self._is_a_repetition(statement):
            return []
        if self._episode is not None and self._episode.assigned is not None:
            self._settle_before(statement)
        if statement.kind not in ("preparing", "no_rebalance", "without_assignment"):
            self._release_static()
        if statement.kind not in ("deleted", "dead"):
            self._dead = None
        self._settle_join(statement)
        do = self._do.get(statement.kind)
        if do is not None:
            do(statement)
        return self._ready()

    def finish(self) -> list[EventRow]:
        """The events still pending when the logs end."""
        if self._episode is not None and self._episode.assigned is not None:
            self._complete_rebalance()
        self._settle_join(None)
        self._release_static()
        ready, self._out = self._out, []
        return ready

    def _ready(self) -> list[EventRow]:
        open_ = self._episode is not None or self._replaced is not None or self._dead is not None
        if open_ and len(self._out) < MOST_PENDING:
            return []
        ready, self._out = self._out, []
        return ready

    def _is_a_repetition(self, statement: Statement) -> bool:
        """True for a line that was read before: from a copy of the file, or from a shipper that sent it twice."""
        if not statement.text:
            return False
        key = (statement.node, statement.at_ms, statement.text)
        if key in self._seen:
            self.repeated += 1
            return True
        self._seen[key] = None
        if len(self._seen) > 4_096:
            for old in list(self._seen)[:2_048]:
                del self._seen[old]
        return False

    # --- the whole group

    def _on_emptied(self, statement: Statement) -> None:
        self._generation = int(statement.values["generation"])
        episode, self._episode = self._episode, None
        self._stable_members, self._stable_leader = [], None
        self._members, self._complete, self._leader = {}, True, None
        self._returned.clear()
        if self._state is None:
            self._state = PREPARING
        self._enter(statement, EMPTY)
        self._emit(
            statement,
            "group_emptied",
            generation=self._generation,
            rebalance_ms=statement.order_ms - episode.began.order_ms if episode is not None else None,
            offsets_partition=statement.partition,
            **(episode.cause if episode is not None else {}),
        )

    def _on_simple(self, statement: Statement) -> None:
        self._state, self._generation = EMPTY, 0
        self._members, self._complete = {}, True
        self._emit(statement, "group_created", offsets_partition=statement.partition, simple=True)

    def _on_dead(self, statement: Statement) -> None:
        self._dead = self._emit(statement, "group_deleted", INFERRED, reason="expired")
        self._gone()

    def _on_deleted(self, statement: Statement) -> None:
        if self._dead is not None:
            self._dead |= {"reason": "requested", "confidence": EXACT}
            self._dead = None
            return
        self._emit(statement, "group_deleted", reason="requested")
        self._gone()

    def _gone(self) -> None:
        self._state, self._generation, self._episode, self._leader = None, None, None, None
        self._members, self._handed_out, self._complete = {}, {}, False
        self._stable_members, self._stable_leader = [], None

    def _on_offsets_deleted(self, statement: Statement) -> None:
        self._emit(statement, "offsets_deleted", reason="requested")

    def _on_unloading(self, statement: Statement) -> None:
        if self._node in (None, statement.node):
            self._interrupt()

    def _on_loaded_member(self, statement: Statement) -> None:
        values = statement.values
        if values["member"] not in self._members:
            self._members[values["member"]] = values.get("instance")

    def _on_loading(self, statement: Statement) -> None:
        self._load(statement, int(statement.values["generation"]), None)

    def _on_loaded_classic(self, statement: Statement) -> None:
        self._load(statement, None, int(statement.values["members"]))

    def _load(self, statement: Statement, generation: int | None, count: int | None) -> None:
        """Another coordinator, or this one after a restart, has the group from the log: as it was last stored."""
        self._interrupt()
        self._node = statement.node
        stable = self._stable_members
        if generation is not None:
            self._generation = generation
        if count is not None:
            self._state = STABLE if count else EMPTY
        elif self._state is None:
            self._state = (STABLE if stable else EMPTY) if stable is not None and generation else None
        if count == 0:
            self._members, self._complete, self._stable_members = {}, True, []
        elif stable is not None and (count is None or count == len(stable)) and stable:
            self._members = {member: self._members.get(member) for member in stable}
            self._complete = True
        else:
            self._complete = count is not None and count == len(self._members)
        self._leader, self._leader_is_named = self._stable_leader, False
        self._emit(
            statement,
            "group_loaded",
            EXACT if count is not None else INFERRED,
            state=self._state,
            generation=self._generation,
            members=self._known_members(),
            member_count=count,
            offsets_partition=statement.partition,
        )

    def _interrupt(self) -> None:
        """A join or sync phase ends with its coordinator; members that were never stored are none."""
        if self._episode is not None and self._state in (PREPARING, COMPLETING):
            self._state = None
        self._episode = None
        self._handed_out.clear()
