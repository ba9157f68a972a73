"""Arguments that the methods of the kit take in several forms. Any other is refused in one sentence."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from rejoin.coordinator.testing.results import hides_traceback
from rejoin.protocol.message import Request
from rejoin.protocol.registry import HEARTBEAT, api_named

Data: TypeAlias = str | bytes | None
Written: TypeAlias = Data | tuple[Data, Data] | Mapping[str, Any]
"""A record to be written: a value, a pair of key and value, or a mapping with key, value, headers and timestamp."""

Offsets: TypeAlias = Mapping[Any, int] | Iterable[Any]
"""Offsets by partition, or the TopicPartition objects of a library that have an offset, as confluent-kafka's."""

_PAIR: Final = 2
_LONGEST_GIVEN: Final = 60

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


def all_written(records: Any) -> Any:
    """Records as the control API takes them: how many, or each of them in base64."""
    if isinstance(records, int):
        return records
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise _unexpected("records", "how many, or a list of records", records)
    return tuple(_written(record, f"records.{number}") for number, record in enumerate(records))


def _written(record: Any, path: str) -> dict[str, Any]:
    if isinstance(record, (tuple, list)) and len(record) == _PAIR:
        record = {"key": record[0], "value": record[1]}
    elif isinstance(record, (str, bytes, type(None))):
        record = {"value": record}
    elif not isinstance(record, Mapping) or not all(isinstance(name, str) for name in record):
        forms = "a value, a pair of key and value, or a mapping with key, value, headers and timestamp"
        raise _unexpected(path, forms, record)
    found = dict(record)
    for name in ("key", "value"):
        if name in found:
            found[name] = _base64(found[name], f"{path}.{name}")
    found["headers"] = _headers(found.get("headers") or (), f"{path}.headers")
    return found


def _headers(headers: Any, path: str) -> tuple[tuple[str, str | None], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    forms = "values by name, or a list of pairs of name and value"
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise _unexpected(path, forms, headers)
    found = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != _PAIR or not isinstance(pair[0], str):
            raise _unexpected(path, forms, headers)
        found.append((pair[0], _base64(pair[1], f"{path}.{pair[0]}")))
    return tuple(found)


def _base64(data: Any, path: str) -> str | None:
    if data is None:
        return None
    if not isinstance(data, (str, bytes)):
        raise _unexpected(path, "text or bytes", data)
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode("ascii")


def wanted_offsets(offsets: Any) -> tuple[dict[str, Any], ...]:
    """Offsets by partition as the control API takes them."""
    forms = "offsets by (topic, partition), or a list of objects with topic, partition and offset"
    if isinstance(offsets, (str, bytes)) or not isinstance(offsets, Iterable):
        raise _unexpected("offsets", forms, offsets)
    pairs = offsets.items() if isinstance(offsets, Mapping) else ((each, _part(each, "offset")) for each in offsets)
    wanted = []
    for key, offset in pairs:
        is_pair = isinstance(key, tuple) and len(key) == _PAIR
        topic, partition = key if is_pair else (_part(key, "topic"), _part(key, "partition"))
        if topic is None or partition is None or offset is None:
            raise _unexpected("offsets", forms, offsets)
        wanted.append({"topic": topic, "partition": partition, "offset": offset})
    return tuple(wanted)


def check_call(request: Any, version: Any, client_id: Any, broker: Any) -> None:
    """Refuse what is not one of Kafka's requests, or not asked for as one."""
    if not isinstance(request, Request):
        raise _unexpected("request", f"one of Kafka's requests, such as {_example(request)}", request)
    check_type("client_id", client_id, str)
    for name, value in (("version", version), ("broker", broker)):
        if value is not None:
            check_type(name, value, int)


def _example(given: object) -> str:
    """The request that is meant by what was given in its place, and the line that imports it."""
    name = given.__name__ if isinstance(given, type) else str(given)
    request = (api_named(name.removesuffix("Request")) or HEARTBEAT).request
    return f"a {request.__name__} (from {request.__module__} import {request.__name__})"


def check_type(name: str, value: object, kind: type) -> None:
    """Refuse an argument of another type."""
    if type(value) is not kind:
        raise _unexpected(name, {str: "text", int: "a number", bool: "True or False"}[kind], value)


def _part(given: Any, name: str) -> Any:
    return getattr(given, name, None)


def _unexpected(path: str, expected: str, given: Any) -> ValueError:
    text = repr(given)
    shown = text if len(text) <= _LONGEST_GIVEN else text[:_LONGEST_GIVEN] + "…"
    return ValueError(f"{path}: expected {expected}, not {shown}")
