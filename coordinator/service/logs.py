"""Logging: readable lines on a terminal, JSON elsewhere; both through structlog, to standard error."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Any, Final, TextIO, cast
from zlib import crc32

import orjson
import structlog

from rejoin.coordinator.service.log_lines.log_bounds import LineBudget, cut_fields
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import AppendFailed
from rejoin.journal.events.transactions import TransactionPrepared
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.printable import printable_fields, printable_json

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}

_LONGEST_LIST: Final = 6
_LEVELS_BY_EVENT: Final = {
    "core_failed": "error",
    "journal_rows_lost": "error",
    "append_failed": "warning",
    "assignment_store_failed": "warning",
    "transaction_started": "debug",
    "partitions_added_to_txn": "debug",
    "transaction_prepared": "debug",
    "transaction_completed": "debug",
    "transaction_opened": "debug",
    "transaction_marker_written": "debug",
    "share_records_acquired": "debug",
    "share_records_acknowledged": "debug",
    "share_records_archived": "debug",
    "share_window_moved": "debug",
}
"""Others are at info. What healthy producers and share consumers emit all the time is at debug, as on Kafka."""
_LOGGED_BY_STORAGE: Final = ErrorCode.KAFKA_STORAGE_ERROR.name

_MOST_REASONS: Final = 20
_MOST_CLIENTS: Final = 500
_MOST_NAMES: Final = 100
_LONGEST_CLIENT: Final = 200
_LONGEST_PART: Final = 80


def client_name(*parts: str) -> str:
    """A client's name for :class:`LoggedReasons`, of what it says of itself; none of it takes the place of the rest."""
    return " ".join(part[:_LONGEST_PART] for part in parts)


class LoggedReasons:
    """Which reasons for refusing clients are logged: each of a client once, and so many of each.

    Clients choose what they send, so memory is bounded: the client that was refused least recently is forgotten first,
    and its reasons may be logged again. So is the log: an address has so many names, and any others count as one.
    """

    def __init__(self, metric: str) -> None:
        """``metric`` counts the lines that are not logged."""
        self._end = f"{_MOST_REASONS} reasons are logged already; others are counted in {metric} and not logged"
        self._by_client: dict[str, set[int]] = {}
        self._names: dict[str, set[int]] = {}
        """The names of each address."""

    def to_log(self, client: str, reason: str, kind: str = "", address: str = "") -> str | None:
        """The text to log: the reason; a note that further ones are only counted; or nothing.

        Reasons of one ``kind`` are the same though their texts differ. With an address, ``client`` is a name that it
        gave itself.
        """
        client = client[:_LONGEST_CLIENT]
        if address and not self._is_known(client, address):
            client = address
        logged = _entry(self._by_client, client)
        key = crc32((kind or reason).encode())
        if key in logged or len(logged) > _MOST_REASONS:
            return None
        logged.add(key)
        return reason if len(logged) <= _MOST_REASONS else self._end

    def _is_known(self, client: str, address: str) -> bool:
        """Whether this is one of the names of an address; it is from now on, unless there are too many."""
        names = _entry(self._names, address)
        name = crc32(client.encode())
        if name not in names and len(names) < _MOST_NAMES:
            names.add(name)
        return name in names


def _entry(by_client: dict[str, set[int]], client: str) -> set[int]:
    """The entry of a client, which is the newest now; the oldest one makes place for it."""
    entry = by_client.pop(client, None) or set()
    if len(by_client) >= _MOST_CLIENTS:
        del by_client[next(iter(by_client))]
    by_client[client] = entry
    return entry


class _Unfailing:
    """A stream whose lines are lost where they cannot be written: a full disk must not stop the node.

    A closed stream raises ValueError: test runners close the streams that they replace.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Configure structlog. Call once, before anything logs."""
    out = sys.stderr if stream is None else stream
    processors: list[Any] = [LineBudget(), structlog.processors.add_log_level]
    if out.isatty():
        processors += [
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.processors.format_exc_info,
            cut_fields,
            printable_fields,
            structlog.dev.ConsoleRenderer(
                sort_keys=False, pad_event_to=20, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    else:
        processors += [
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            cut_fields,
            structlog.processors.JSONRenderer(
                serializer=lambda line, **_: printable_json(orjson.dumps(line, default=str).decode())
            ),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Unfailing(out))),
        cache_logger_on_first_use=True,
    )


def shortened(event: Event) -> dict[str, Any]:
    """An event's fields for a log line: ownership as partition counts, long lists as their length."""
    return {name: _short(getattr(event, name)) for name in type(event).model_fields}


def level_of(event: Event) -> str:
    """The level of an event. The offsets log reports its own failures, with the reason."""
    level = _LEVELS_BY_EVENT.get(event.name, "info")
    if level == "warning" and isinstance(event, AppendFailed) and event.error == _LOGGED_BY_STORAGE:
        return "debug"
    if isinstance(event, TransactionPrepared) and event.ended_by in ("timeout", "fencing"):
        return "info"
    return level


def is_level_fixed(event: Event) -> bool:
    """Whether all events of this class have the level of this one."""
    return not isinstance(event, AppendFailed | TransactionPrepared)


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return f"[{len(value)}]" if len(value) > _LONGEST_LIST else [_short(each) for each in value]
    if isinstance(value, dict):
        if len(value) > _LONGEST_LIST:
            return f"{{{len(value)}}}"
        return {key: _owned(each) for key, each in value.items()}
    if hasattr(value, "model_dump"):
        return {name: each for name, each in value.model_dump().items() if each is not None}
    return value


def _owned(value: Any) -> Any:
    if isinstance(value, dict):
        return sum(len(partitions) for partitions in value.values() if isinstance(partitions, list))
    return value
