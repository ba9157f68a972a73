"""Groups of the newer protocols (KIP-848) in logs: members reconcile one by one, and there is no join phase."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.reading.broker_logs.membership import (
    EXACT,
    INFERRED,
    Membership,
)
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN
from rejoin.pipeline.reading.broker_logs.statements import Statement


class ModernGroups(Membership):
    """Members and epochs of consumer, share and streams groups, from the lines about them."""

    _generation: int | None
    _trigger: dict[str, Any] | None

    def _on_modern_joined(self, statement: Statement) -> None:
        values = statement.values
        self._add(statement, values["member"], values.get("instance"), EXACT, None, kind=values.get("protocol"))
        self._trigger = self._caused("join-new", statement)

    def _on_modern_replaced(self, statement: Statement) -> None:
        values = statement.values
        self._rename(values["old"], values["member"], values["instance"])
        self._emit(
            statement,
            "static_member_replaced",
            group_instance_id=values["instance"],
            other_member_id=values["old"],
            member_id=values["member"],
        )

    def _on_loaded_modern(self, statement: Statement) -> None:
        self._emit(
            statement,
            "group_loaded",
            generation=self._generation,
            member_count=int(statement.values["members"]),
            offsets_partition=statement.partition,
        )

    def _on_modern_left(self, statement: Statement) -> None:
        self._remove(statement, statement.values["member"], "left", EXACT, None)
        self._trigger = self._caused("leave", statement)

    def _on_modern_fenced(self, statement: Statement) -> None:
        why = statement.values["why"]
        expired = "session" in why
        cause = "session-expiry" if expired else "did-not-rejoin"
        self._remove(statement, statement.values["member"], cause, EXACT, None, reason=why)
        self._trigger = self._caused("session-expiry" if expired else UNKNOWN, statement)

    def _on_modern_subscribed(self, statement: Statement) -> None:
        # A member that joins subscribes as well; its join is the cause.
        self._trigger = self._trigger or self._caused("rejoin-metadata", statement)

    def _on_modern_metadata(self, statement: Statement) -> None:
        self._trigger = {"cause": UNKNOWN, "reason": statement.text} | (self._trigger or {})

    def _caused(self, cause: str, statement: Statement) -> dict[str, Any]:
        return {
            "cause": cause,
            "cause_member_id": statement.values["member"],
            "cause_group_instance_id": statement.values.get("instance"),
        }

    def _on_modern_bumped(self, statement: Statement) -> None:
        epoch = int(statement.values["epoch"])
        cause, self._trigger = self._trigger or {"cause": UNKNOWN}, None
        # The line itself has no reason: it is taken from the lines before it.
        self._emit(statement, "rebalance_started", INFERRED, generation=epoch - 1, initial=False, **cause)
        self._generation = epoch

    def _on_modern_assigned(self, statement: Statement) -> None:
        epoch, assignor = int(statement.values["epoch"]), statement.values["assignor"]
        self._emit(statement, "assignment_received", generation=epoch, protocol=assignor)
        # Confidence unknown: when the members have what they shall have is not logged.
        self._emit(statement, "rebalance_completed", "unknown", generation=epoch, protocol=assignor, cause=UNKNOWN)
