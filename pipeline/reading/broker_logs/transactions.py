"""Transactions in brokers' logs, as the events of a journal.

The logs show when a producer id was initialized, when a transaction timed out and when a log refused a batch. They do
not show when a transaction begins or is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement

OF_TRANSACTIONS: Final = "txn_"
"""Prefix of the kinds of statements about transactions."""
_FENCED: Final = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_LOG: Final = "__transaction_state"


def transaction_events(statements: Iterable[Statement]) -> Iterator[EventRow]:
    """The events of one transactional id, or of what has none, from its statements in their order."""
    producer: dict[str, Any] = {}
    for statement in statements:
        values = statement.values
        match statement.kind:
            case "txn_initialized":
                producer = _producer(values)
                yield _event(statement, "producer_id_initialized", EXACT, **producer)
            case "txn_timed_out":
                known = producer | {"transactional_id": values["transactional_id"]}
                ended = {"committed": False, "ended_by": "timeout"}
                yield _event(statement, "transaction_completed", EXACT if producer else INFERRED, **known, **ended)
            case "txn_not_initialized" if values["error"] in _FENCED:
                about = producer | {"transactional_id": values["transactional_id"]}
                yield _event(
                    statement, "producer_fenced", INFERRED, **about, api="InitProducerId", error=values["error"]
                )
            case "txn_append_refused":
                yield _event(
                    statement,
                    "producer_fenced",
                    EXACT,
                    producer_id=_number(values.get("producer_id")),
                    producer_epoch=_number(values["producer_epoch"]),
                    current_epoch=_number(values["current_epoch"]),
                    api="Produce",
                    error=_FENCED[1],
                    topic=values["topic"],
                    partition=_number(values["number"]),
                )
            case "txn_loaded":
                loaded = {"topic": _LOG, "partition": statement.partition}
                ids = _number(values["records"])
                yield _event(statement, "transactions_loaded", EXACT, **loaded, transactional_ids=ids)


def _producer(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "transactional_id": values["transactional_id"],
        "producer_id": _number(values["producer_id"]),
        "producer_epoch": _number(values["producer_epoch"]),
    }


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _event(statement: Statement, event: str, confidence: str, **fields: Any) -> EventRow:
    row = {
        "event": event,
        "at_ms": statement.at_ms,
        "order_ms": statement.order_ms,
        "node": statement.node,
        "file": statement.file,
        "line": statement.line,
        "confidence": confidence,
    }
    return row | {name: value for name, value in fields.items() if value is not None}
