"""Producers and transactions, from InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit and EndTxn.

Where markers are written later than the end is decided, no request shows it: a transaction counts as completed when
EndTxn is answered. A producer that is initialized again ends the transaction that it had open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rejoin.journal.kafka_logs.request_lines import api_name
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import partition_rows, partitions_in
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, event_row
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, EventRow

_FENCED: Final = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_SECOND_VERSION: Final = {"END_TXN": 5, "TXN_OFFSET_COMMIT": 5}
"""Versions from which on a request is one of transaction.version 2 (KIP-890)."""


def producer_events(asked: Iterable[SourcedExchange]) -> Iterator[EventRow]:
    """The events of one transactional id, or of producers that have none, from requests in the order of answers."""
    return _Producer().events(asked)


class _Producer:
    """A transactional id, and the transaction that it has open."""

    def __init__(self) -> None:
        self._timeout_ms: int | None = None
        self._began_at: int | None = None
        self._partitions: set[tuple[str, int]] = set()
        self._owner: dict[str, Any] = {}

    def events(self, asked: Iterable[SourcedExchange]) -> Iterator[EventRow]:
        for each in sorted(asked, key=lambda one: (one.exchange.answered_at_ms, one.exchange.line)):
            exchange = each.exchange
            if exchange.error in _FENCED:
                yield self._fenced(each)
            elif exchange.error == "CONCURRENT_TRANSACTIONS" and exchange.api == "INIT_PRODUCER_ID":
                # Kafka: the transaction of the process before is aborted first, and the new one asks again.
                if self._began_at is not None:
                    yield from self._ended(each, False, "fencing", INFERRED)
            elif exchange.error is not None:
                continue
            elif exchange.api == "INIT_PRODUCER_ID":
                yield from self._initialized(each)
            elif exchange.api == "ADD_PARTITIONS_TO_TXN":
                yield from self._added(each, partitions_in(exchange.request.get("v3AndBelowTopics"), {}))
            elif exchange.api in ("ADD_OFFSETS_TO_TXN", "TXN_OFFSET_COMMIT"):
                yield from self._added(each, [])
            elif exchange.api == "END_TXN":
                yield from self._ended(each, bool(exchange.request.get("committed")), "client", EXACT)

    def _who(self, each: SourcedExchange, *, answered: bool = False) -> dict[str, Any]:
        exchange = each.exchange
        body = exchange.response if answered else exchange.request
        found = {"transactional_id": transactional_id_of(exchange.request)}
        for name, fields in _NUMBERS.items():
            value = next((body[field] for field in fields if type(body.get(field)) is int), None)
            if value is not None and value >= 0:
                found[name] = value
        return {name: value for name, value in found.items() if value is not None}

    def _initialized(self, each: SourcedExchange) -> Iterator[EventRow]:
        exchange = each.exchange
        if self._began_at is not None:
            yield from self._ended(each, False, "fencing", INFERRED)
        timeout = exchange.request.get("transactionTimeoutMs")
        who = self._who(each, answered=True)
        self._timeout_ms = timeout if isinstance(timeout, int) and "transactional_id" in who else None
        event = _row(each, "producer_id_initialized", EXACT) | who
        if self._timeout_ms is not None:
            event["transaction_timeout_ms"] = self._timeout_ms
        previous = self._owner.get("producer_id")
        if previous is not None and "transactional_id" in who and previous != who.get("producer_id"):
            event["previous_producer_id"] = previous
        self._owner = who
        yield event

    def _added(self, each: SourcedExchange, partitions: list[tuple[str, int]]) -> Iterator[EventRow]:
        """Partitions are in the transaction; the one of the group's offsets is not named by requests."""
        fresh = [partition for partition in partitions if partition not in self._partitions]
        self._partitions.update(fresh)
        is_first = self._began_at is None
        if not is_first and not fresh:
            return
        event = _row(each, "transaction_started" if is_first else "partitions_added_to_txn", EXACT)
        event |= self._who(each) | {"partitions": partition_rows(fresh)}
        if is_first:
            self._began_at = each.exchange.answered_at_ms
            if self._timeout_ms is not None:
                event["transaction_timeout_ms"] = self._timeout_ms
        yield event

    def _ended(self, each: SourcedExchange, committed: bool, ended_by: str, confidence: str) -> Iterator[EventRow]:
        exchange, began = each.exchange, self._began_at
        who = self._owner if ended_by == "fencing" else self._who(each)
        about: dict[str, Any] = who | {"committed": committed, "ended_by": ended_by}
        if began is not None:
            about["open_ms"] = exchange.answered_at_ms - began
        self._began_at, self._partitions = None, set()
        answered = self._who(each, answered=True)
        if exchange.api == "END_TXN" and "producer_id" in answered:
            # Kafka: with version 2 each end raises the epoch.
            self._owner = self._owner | answered
        version = 2 if exchange.api_version >= _SECOND_VERSION.get(exchange.api, 1 << 15) else 1
        yield _row(each, "transaction_prepared", confidence) | about | {"transaction_version": version}
        yield _row(each, "transaction_completed", INFERRED) | about

    def _fenced(self, each: SourcedExchange) -> EventRow:
        event = _row(each, "producer_fenced", EXACT) | self._who(each)
        return event | {"api": api_name(each.exchange.api), "error": each.exchange.error}


_NUMBERS: Final = {
    "producer_id": ("producerId", "v3AndBelowProducerId"),
    "producer_epoch": ("producerEpoch", "v3AndBelowProducerEpoch"),
}


def transactional_id_of(request: dict[str, Any]) -> str | None:
    """The transactional id that a request is about."""
    for name in ("transactionalId", "v3AndBelowTransactionalId"):
        if isinstance(request.get(name), str) and request[name]:
            return str(request[name])
    return None


def _row(each: SourcedExchange, name: str, confidence: str) -> EventRow:
    return event_row(each, name, confidence, each.exchange.answered_at_ms)
