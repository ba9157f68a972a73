"""Lines of journals that are not as our writers write them: judged one by one, each an event or a mistake.

A row may have other spacing, fields that its event lacks, and none that came later. What is wrong with a line is the
first mistake that applies. Nothing here needs Spark or Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

from rejoin.journal.envelope import SCHEMA_VERSION
from rejoin.pipeline.event_fields import CAUSE, CAUSE_FIELDS, ENVELOPE, EVENT_CLASSES, FIELDS_AS_JSON
from rejoin.pipeline.reading.limits import LATEST_MS, MOST, MOST_PARTITIONS, NO_INSTANT, TOO_LARGE, is_instant

_NOT_JSON: Final = "not JSON; expected one JSON object in each line"
_GLUED: Final = "more than one JSON object in a line"
_TEXTS: Final = ("run_id", "source", "node", "event")
_REQUIRED: Final = {
    # A field that has a default came later: older journals lack it.
    name: [field for field, info in event.model_fields.items() if info.is_required()]
    for name, event in EVENT_CLASSES.items()
}
_PROBLEMS: Final = (("not UTF-8", "encoding"), ("a half line", "half-line"), (TOO_LARGE, "field"))


class LineMistake(NamedTuple):
    """Why a line is no event: its ``kind`` in the quarantine, and the reason in words."""

    kind: str
    reason: str


def read_unusual(text: str, problem: str | None) -> dict[str, Any] | LineMistake:
    """The values of a row by the names of its fields, or what is wrong with its line.

    Values have the types of their fields where they can have them: :mod:`usual_lines` looks at the rest.
    """
    if problem is not None:
        kinds = (kind for words, kind in _PROBLEMS if problem.startswith(words))
        return LineMistake(next(kinds, "unreadable"), problem)
    if not text.strip():
        return LineMistake("not-json", "an empty line; expected one JSON object")
    row, rest = _decoded(text)
    if row is None:
        return LineMistake("not-json", _NOT_JSON)
    return _mistake_in_envelope(row, rest) or _mistake_in_fields(row) or _values(row)


def _decoded(text: str) -> tuple[dict[str, Any] | None, str]:
    """The first object of a line, and what comes after it."""
    text = text.strip()
    if not text.startswith("{"):
        return None, ""
    try:
        row, end = _DECODER.raw_decode(text)
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half a character, as an escape.
        row = json.loads(json.dumps(row, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None, ""
    return row, text[end:].strip()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def newer(version: int, known: int) -> str:
    """Why a row of this version cannot be read."""
    return f"schema version {version}; this program knows versions up to {known}, take a newer one"


def _mistake_in_envelope(row: dict[str, Any], rest: str) -> LineMistake | None:
    version = row.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        return LineMistake("version", newer(version, SCHEMA_VERSION))
    absent = [name for name in ENVELOPE if name not in row]
    if absent:
        return LineMistake("not-a-row", f"not a row of a journal: it has no {', '.join(absent)}")
    if rest:
        return LineMistake("not-json", _GLUED)
    if any(row[name] is None if name in _TEXTS else type(row[name]) is not int for name in ENVELOPE):
        return LineMistake("field", f"the value of one of these is not what it should be: {', '.join(ENVELOPE)}")
    if not is_instant(row["at_ms"]):
        return LineMistake("field", f"at_ms is {row['at_ms']}; {NO_INSTANT}")
    return None


def _mistake_in_fields(row: dict[str, Any]) -> LineMistake | None:
    event = _as_text(row["event"])
    if any(is_too_large(name, FIELDS_AS_JSON[name], value) for name, value in _known(row)):
        return LineMistake("field", f"{event}: {TOO_LARGE}")
    if event not in _REQUIRED:
        return LineMistake("unknown-event", f"unknown event {event}")
    missing = [name for name in _REQUIRED[event] if name not in row]
    return LineMistake("field", f"{event} without {', '.join(missing)}") if missing else None


def of_another_type(event: str) -> LineMistake:
    """The reason for rejecting a row with a value that does not fit its field."""
    return LineMistake("field", f"{event}: the value of a field has not the type it should have")


def _known(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in row.items() if name in FIELDS_AS_JSON)


def is_too_large(name: str, kind: str, value: Any) -> bool:
    """Whether this is a number that cannot be counted with."""
    if type(value) not in (int, float):
        return False
    if name.endswith("partition_count") and value > MOST_PARTITIONS:
        return True
    if kind in ("INT", "DOUBLE"):
        return not -MOST <= value <= MOST
    return kind == "BIGINT" and name.endswith("_ms") and not -LATEST_MS <= value <= LATEST_MS


def _values(row: dict[str, Any]) -> dict[str, Any]:
    envelope = {name: _as_text(row[name]) if name in _TEXTS else row[name] for name in ENVELOPE}
    fields = dict.fromkeys(EVENT_CLASSES[envelope["event"]].model_fields)
    return envelope | {"schema_version": SCHEMA_VERSION} | fields | {name: _value(name, v) for name, v in _known(row)}


def _value(name: str, value: Any) -> Any:
    if name == CAUSE:
        return _cause(value)
    kind = FIELDS_AS_JSON[name]
    if kind == "STRING":
        return _as_text(value)
    if kind == "ARRAY<STRING>" and isinstance(value, list):
        return [_as_text(each) for each in value]
    return value


def _as_text(value: Any) -> Any:
    """A text, or another value as it stands in JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _cause(value: Any) -> Any:
    """A word, or an object with all its parts."""
    if isinstance(value, str) and value.startswith("{"):
        value, _ = _decoded(value)
        value = value or {}
    if isinstance(value, dict):
        return {name: _as_text(value.get(name)) for name in CAUSE_FIELDS}
    return _as_text(value)
