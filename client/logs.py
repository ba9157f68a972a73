"""A consumer's events as log lines: readable on a terminal, JSON elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, TextIO

import orjson
import structlog

from rejoin.client.transports.nodes import LOGGER
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent
from rejoin.protocol.printable import printable_fields, printable_json

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

LEVEL_OF: Final = {
    "subscribing": "debug",
    "join_sent": "debug",
    "positions_found": "debug",
    "records_processed": "debug",
    "commit_succeeded": "debug",
    "commit_failed": "warning",
    "heartbeat_failed": "warning",
    "coordinator_not_found": "warning",
    "assignor_failed": "error",
    "listener_failed": "error",
    "poll_timeout_exceeded": "warning",
    "partitions_lost": "warning",
    "fenced": "error",
}
"""The level of each event's line; info for all others."""

_MAX_SHOWN = 12


def _json(line: Any) -> str:
    """A line as JSON. Offsets are by partition number, which JSON has only as text."""
    return printable_json(orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode())


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Configure structlog for a process of consumers: lines go to standard error."""
    out = sys.stderr if stream is None else stream
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if out.isatty():
        processors += [
            printable_fields,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    else:
        processors.append(structlog.processors.JSONRenderer(serializer=lambda line, **_: _json(line)))
    LOGGER.disabled = True  # the consumers' own events say it
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=True,
    )


def log_event(log: Any, event: Event) -> None:
    """Log an event under its own name."""
    level = LEVEL_OF.get(event.name, "info")
    if not log.is_enabled_for(LEVELS[level]):
        return
    fields = {name: _shown(getattr(event, name)) for name in type(event).model_fields}
    if isinstance(event, ConsumerEvent):
        fields = {"client": event.client_id, **fields}
        for name in ("client_id", "group_id"):
            del fields[name]
        if event.group_instance_id is None:
            del fields["group_instance_id"]
    getattr(log, level)(event.name, **fields)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        if value and all(isinstance(numbers, list) for numbers in value.values()):
            return " ".join(f"{topic}:{runs(numbers)}" for topic, numbers in value.items())
        return value if len(value) <= _MAX_SHOWN else f"{len(value)} entries"
    if isinstance(value, list):
        return [_shown(each) for each in value] if len(value) <= _MAX_SHOWN else f"{len(value)} entries"
    return value.model_dump() if hasattr(value, "model_dump") else value


def runs(numbers: list[int]) -> str:
    """Numbers with runs joined: ``0-3,7``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)
