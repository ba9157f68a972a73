"""Every event of a consumer can be logged, on a terminal and as JSON, at every level."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

import pytest
import structlog

from rejoin.client.logs import configure, log_event
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import EVENT_TYPES

SAMPLES: dict[str, Any] = {
    "Offsets": {"orders": {0: 5, 11: 7}},
    "Partitions": {"orders": [0, 1, 2]},
}


def sample(event: type[Event]) -> Event:
    """An event with something in every field."""
    values: dict[str, Any] = {}
    for name, info in event.model_fields.items():
        kind = info.annotation
        choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
        text = str(kind)
        if choices:
            values[name] = choices[0]
        elif "dict[int, " in text:
            values[name] = SAMPLES["Offsets"]
        elif "dict[str, list[int]]" in text:
            values[name] = SAMPLES["Partitions"]
        elif "Range" in text:
            values[name] = [{"topic": "orders", "partition": 0, "start": 1, "end": 3}]
        elif "list" in text:
            values[name] = ["orders"]
        elif kind is bool:
            values[name] = True
        elif kind is int or "int" in text:
            values[name] = 1
        else:
            values[name] = "x"
    return event.model_validate(values)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("event", EVENT_TYPES, ids=lambda event: str(event.name))
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_every_event_can_be_logged(event: type[Event], stream: type[io.StringIO]) -> None:
    out = stream()
    configure("debug", out)
    try:
        log_event(structlog.get_logger(), sample(event))
    finally:
        structlog.reset_defaults()
    assert event.name in out.getvalue()
    if stream is io.StringIO:
        assert json.loads(out.getvalue())["event"] == event.name


def test_a_terminal_is_shown_names_and_does_not_obey_them() -> None:
    configure("debug", out := Terminal())
    try:
        structlog.get_logger().info("group_joined", client="orders\x1b[2J", topics=["\x1b[31m"])
    finally:
        structlog.reset_defaults()
    assert "\x1b[2J" not in out.getvalue()
    assert "orders\\x1b[2J" in out.getvalue()
    assert "['\\x1b[31m']" in out.getvalue()


def test_a_line_of_json_has_escapes_for_what_is_not_visible() -> None:
    configure("debug", out := io.StringIO())
    try:
        structlog.get_logger().info("group_joined", client="\x9b2J\u202eé", topics=["\x7f"])
    finally:
        structlog.reset_defaults()
    assert out.getvalue().strip().isprintable()
    assert json.loads(out.getvalue())["client"] == "\x9b2J\u202eé"
