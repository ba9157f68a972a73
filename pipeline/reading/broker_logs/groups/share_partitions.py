"""Share-partitions in the logs of the brokers that lead them, as far as lines name them."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.reading.broker_logs.groups.membership import Membership
from rejoin.pipeline.reading.broker_logs.statements import Statement

_NOT_NAMED = "null"
"""Stands for the topic in lines of the persister, which knows its id only."""


class SharePartitions(Membership):
    """The share-partitions of a group, by their leaders. Records have no lines, so their holders are not known."""

    def _on_share_loaded(self, statement: Statement) -> None:
        values = statement.values
        start, epoch = int(values["offset"]), int(values["state_epoch"])
        self._emit_of(statement, "share_partition_loaded", start_offset=start, state_epoch=epoch)

    def _on_share_full(self, statement: Statement) -> None:
        self._emit_of(statement, "share_window_full", limit=int(statement.values["limit"]))

    def _on_share_failed(self, statement: Statement) -> None:
        operation = "write" if statement.text.startswith("Failed to write") else "read"
        error = statement.values.get("problem")
        self._emit_of(statement, "share_persister_failed", operation=operation, error=error)

    def _on_share_unreached(self, statement: Statement) -> None:
        error = statement.values.get("problem") or "COORDINATOR_NOT_AVAILABLE"
        operation = statement.values["handler"].removesuffix("Handler").removesuffix("State").lower()
        self._emit_of(statement, "share_persister_failed", operation=operation, error=error)

    def _emit_of(self, statement: Statement, event: str, **columns: Any) -> None:
        topic = statement.values["topic"]
        named = {} if topic == _NOT_NAMED else {"topic": topic}
        self._emit(statement, event, partition=int(statement.values["number"]), **named, **columns)
