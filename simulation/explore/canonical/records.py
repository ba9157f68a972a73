"""Records in a form: without the instants at which they were written, and with producer ids that can be ranked.

A record batch has the clock in its header, a change of a transaction in its value. Neither makes a difference to what
follows, but for the beginning of a transaction that is open, which ends it by its timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rejoin.coordinator.core.transactions.log import read_transactions
from rejoin.coordinator.core.transactions.metadata import TransactionState
from rejoin.protocol.records.transaction_state import TransactionLogValue
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import HEADER_SIZE, MAGIC, MAGIC_AT
from rejoin.simulation.explore.kernel import FIRST_PRODUCER
from rejoin.simulation.kernel import Millis

if TYPE_CHECKING:
    from rejoin.simulation.explore.canonical.form import Writing

Rule: TypeAlias = Callable[[Any, "Writing"], None]

_LENGTH: Final = slice(8, 12)
_BESIDE_LENGTH: Final = 12
_BEFORE_CRC: Final = 17
_ATTRIBUTES: Final = slice(21, 27)
_PRODUCER: Final = slice(43, 51)
_SEQUENCE: Final = slice(51, HEADER_SIZE)


class _Batch:
    """A batch that was read: bytes that are written as they are, its producer id, and changes of transactions."""

    __slots__ = ("plain", "producer_id", "transactions")

    def __init__(self, data: bytes) -> None:
        self.producer_id = int.from_bytes(data[_PRODUCER], "big", signed=True)
        self.transactions = [] if self.producer_id >= 0 else _transactions(data)
        body = b"" if self.transactions else data[HEADER_SIZE:]
        self.plain = data[:_BEFORE_CRC] + data[_ATTRIBUTES] + data[_SEQUENCE] + body


def _transactions(data: bytes) -> list[tuple[str, TransactionLogValue | None]]:
    try:
        found = list(read_transactions(data))
    except (RecordsError, UnicodeDecodeError):
        return []
    are_known = all(value is None or value.producer_id >= FIRST_PRODUCER for _, value in found)
    return found if are_known else []


_BATCHES: Final[dict[bytes, tuple[list[_Batch], bytes]]] = {}
"""By bytes: their batches, and what stands behind the last one."""
_MOST_KEPT: Final = 50_000


def write_bytes(data: bytes, writing: Writing) -> bool:
    """Write bytes that are record batches. Returns false, and writes nothing, where they are not."""
    if len(data) < HEADER_SIZE or data[MAGIC_AT] != MAGIC:
        return False
    read = _BATCHES.get(data)
    if read is None:
        if len(_BATCHES) >= _MOST_KEPT:
            _BATCHES.clear()
        read = _BATCHES[data] = _read(data)
    batches, rest = read
    for batch in batches:
        writing.out.append(batch.plain)
        writing.write((batch.producer_id,))
        for transactional_id, value in batch.transactions:
            writing.out.append(transactional_id)
            writing.write((value,))
    writing.out.append(rest)
    return True


def _read(data: bytes) -> tuple[list[_Batch], bytes]:
    batches: list[_Batch] = []
    at = 0
    while len(data) - at >= HEADER_SIZE and data[at + MAGIC_AT] == MAGIC:
        end = at + _BESIDE_LENGTH + int.from_bytes(data[at:][_LENGTH], "big")
        if not at + HEADER_SIZE <= end <= len(data):
            break
        batches.append(_Batch(data[at:end]))
        at = end
    return batches, data[at:]


# -- instants of transactions

_SHOWN_ONLY: Final = ("updated_at", "ended_by")


def _age(started_at: Millis, timeout_ms: Millis, writing: Writing) -> Millis:
    """How long ago a transaction began, as far as its timeout cares."""
    return min(writing.now - started_at, timeout_ms + 1)


def _log_value(value: TransactionLogValue, writing: Writing) -> None:
    """A change in the log. Where it is not of an open transaction, its instants say nothing."""
    for name, each in value.__dict__.items():
        if name == "transaction_start_timestamp_ms":
            if value.transaction_status == TransactionState.ONGOING:
                writing.out.append(_age(each, value.transaction_timeout_ms, writing))
        elif name != "transaction_last_update_timestamp_ms":
            writing.write((each,))


def _transit(value: Any, writing: Writing) -> None:
    """A change that is being written."""
    _write_fields(value, value._fields, writing)


def _metadata(value: Any, writing: Writing) -> None:
    """A transactional id."""
    _write_fields(value, value.__slots__, writing)


def _write_fields(value: Any, names: Iterable[str], writing: Writing) -> None:
    for name in names:
        if name == "started_at":
            if value.state is TransactionState.ONGOING:
                writing.out.append(_age(value.started_at, value.timeout_ms, writing))
        elif name not in _SHOWN_ONLY:
            writing.write((getattr(value, name),))


def _cleanup(value: Any, writing: Writing) -> None:
    """Transactions that take too long are looked for at multiples of an interval."""
    writing.out.append(("cleanup", value.since_look(writing.now)))


def _without(*left_out: str) -> Rule:
    """The rule for a named tuple, but for some of its fields."""

    def write(value: Any, writing: Writing) -> None:
        for name, each in zip(value._fields, value, strict=True):
            if name not in left_out:
                writing.write((each,))

    return write


VALUES: Final[dict[str, Rule]] = {
    "TransactionLogValue": _log_value,
    "TxnTransit": _transit,
    "BatchMetadata": _without("timestamp"),
    "BatchHeader": _without("base_timestamp", "max_timestamp", "crc"),
}
"""By class: rules for values, of which two equal ones are one."""

OBJECTS: Final[dict[str, Rule]] = {
    "TransactionMetadata": _metadata,
    "TransactionCleanup": _cleanup,
}
"""By class: rules for objects, which are described once and named after that."""
