"""Groups of the newer protocols (KIP-848) in logs: members reconcile one by one, and there is no join phase."""

from __future__ import annotations

from typing import Any, Final

from rejoin.journal.kafka_logs.share_groups import assignor_name
from rejoin.pipeline.reading.broker_logs.groups.membership import (
    EXACT,
    INFERRED,
)
from rejoin.pipeline.reading.broker_logs.groups.streams_members import STREAMS, StreamsMembers
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN
from rejoin.pipeline.reading.broker_logs.statements import Statement

_FENCED_BECAUSE: Final = {
    "session": "session-expiry",
    "failed to sync": "sync-expiry",
    "failed to transition": "rebalance-expiry",
}
"""Words of a line, and the cause that they stand for."""
_WITHOUT_REBALANCES: Final = ("share", STREAMS)
_REFUSED_BECAUSE: Final = {
    "migration is disabled": "classic-member",
    "is disabled": "policy",
    "embedded consumer protocol": "protocol-type",
    "size": "size",
}


class ModernGroups(StreamsMembers):
    """Members and epochs of consumer, share and streams groups, from the lines about them."""

    _generation: int | None
    _assigned: int | None = None
    """The epoch of the newest target."""

    def _on_modern_joined(self, statement: Statement) -> None:
        values = statement.values
        self._see_type(statement)
        if values["member"] in self._members:
            # Kafka: each JoinGroup of a classic member is logged as that of a new one.
            who = {"member_id": values["member"], "group_instance_id": values.get("instance")}
            self._emit(statement, "member_rejoined", **who)
            return
        if self._type == STREAMS:
            self._joining = statement
        else:
            self._add(statement, values["member"], values.get("instance"), EXACT, None, kind=values.get("protocol"))
        upgrades = self._trigger is not None and self._trigger["cause"] == "upgrade"
        self._trigger = self._caused("upgrade" if upgrades else "join-new", statement)

    def _on_modern_replaced(self, statement: Statement) -> None:
        values = statement.values
        self._rename(values["old"], values["member"], values["instance"])
        self._emit(
            statement,
            "static_member_replaced",
            group_instance_id=values["instance"],
            other_member_id=values["old"],
            member_id=values["member"],
            rebalance=False,
        )

    def _on_loaded_modern(self, statement: Statement) -> None:
        self._see_type(statement)
        self._emit(
            statement,
            "group_loaded",
            generation=self._generation,
            group_type=self._type,
            member_count=int(statement.values["members"]),
            offsets_partition=statement.partition,
        )

    def _on_modern_left(self, statement: Statement) -> None:
        self._see_type(statement)
        self._remove(statement, statement.values["member"], "left", EXACT, None, instance=self._instance_in(statement))
        self._trigger = self._caused("leave", statement)

    def _on_modern_fenced(self, statement: Statement) -> None:
        self._see_streams(statement)
        why = statement.values["why"]
        found = (cause for words, cause in _FENCED_BECAUSE.items() if words in why)
        cause = next(found, "did-not-rejoin")
        self._remove(statement, statement.values["member"], cause, EXACT, None, reason=why)
        self._trigger = self._caused(cause, statement)

    def _on_modern_stuck(self, statement: Statement) -> None:
        self._remove(statement, statement.values["member"], "rebalance-expiry", EXACT, None)
        self._trigger = self._caused("rebalance-expiry", statement)

    def _on_modern_away(self, statement: Statement) -> None:
        values = statement.values
        who = {"member_id": values["member"], "group_instance_id": values["instance"]}
        self._emit(statement, "static_member_left", **who)

    def _on_converted(self, statement: Statement) -> None:
        kind = statement.values["protocol"]
        self._emit(statement, "group_converted", group_type=kind)
        if kind == "consumer":
            self._trigger = {"cause": "upgrade"}

    def _on_converted_empty(self, statement: Statement) -> None:
        self._emit(statement, "group_converted", group_type=statement.values["protocol"])

    def _on_not_converted(self, statement: Statement) -> None:
        to_classic = not statement.text.startswith("Cannot upgrade")
        reason = next(reason for words, reason in _REFUSED_BECAUSE.items() if words in statement.text)
        group_type = "classic" if to_classic else "consumer"
        self._emit(statement, "conversion_refused", group_type=group_type, reason=reason)

    def _on_modern_subscribed(self, statement: Statement) -> None:
        # A member that joins subscribes as well; its join is the cause.
        self._trigger = self._trigger or self._caused("rejoin-metadata", statement)

    def _on_modern_metadata(self, statement: Statement) -> None:
        if self._type == STREAMS:
            self._trigger = self._trigger or {"cause": "topic-metadata"}
        self._trigger = self._trigger or {"cause": UNKNOWN, "reason": statement.text}

    def _on_modern_bumped(self, statement: Statement) -> None:
        self._see_streams(statement)
        self._bump(statement, int(statement.values["epoch"]))

    def _bump(self, statement: Statement, epoch: int) -> None:
        cause, self._trigger = self._trigger or {"cause": UNKNOWN}, None
        is_assigning = self._generation is not None and self._assigned is not None and self._generation > self._assigned
        # The line itself has no reason: it is taken from the lines before it.
        about = {"group_type": self._type, **cause}
        self._emit(statement, "group_epoch_bumped", INFERRED, generation=epoch, **about)
        if not is_assigning and self._type not in _WITHOUT_REBALANCES:
            self._emit(statement, "rebalance_started", INFERRED, generation=epoch - 1, initial=False, **about)
        self._generation = epoch

    def _on_modern_assigned(self, statement: Statement) -> None:
        epoch, assignor = int(statement.values["epoch"]), assignor_name(statement.values["assignor"])
        if self._type in _WITHOUT_REBALANCES and self._generation != epoch:
            # Kafka: the epoch that follows the end of a member is not logged before its target is.
            self._bump(statement, epoch)
        self._assigned = epoch
        about: dict[str, Any] = {"generation": epoch, "protocol": assignor}
        name = "streams_target_computed" if self._type == STREAMS else "target_assignment_computed"
        self._emit(statement, name, **about)
        if self._type in _WITHOUT_REBALANCES:
            # Members share partitions, or take tasks over one by one, and none waits for all others.
            return
        # Confidence unknown: when the members have what they shall have is not logged.
        self._emit(statement, "rebalance_completed", "unknown", cause=UNKNOWN, group_type=self._type, **about)
