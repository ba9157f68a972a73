"""Kafka's messages in their own JSON, written by ``kio``: a second opinion on our codec.

``kio`` names fields in Python's way, counts timeouts as timedeltas and gives error codes as an enum; here everything is
as Kafka's message definitions have it: camelCase, milliseconds, numbers, base64.
"""

from __future__ import annotations

import base64
import io
import typing
import uuid
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

Json: TypeAlias = dict[str, Any]

ZERO_UUID: Final = "A" * 22
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class NoSuchField(ValueError):
    """A field that this version of the message does not have, or one that it must have."""


def encode_body(key: int, version: int, body: Json, is_request: bool) -> bytes:
    """A request or a response without its header."""
    buffer = io.BytesIO()
    _write(buffer, (load_request_schema if is_request else load_response_schema)(key, version), body)
    return buffer.getvalue()


def _write(buffer: io.BytesIO, schema: Any, body: Json) -> None:
    entity_writer(schema)(buffer, _build(schema, body, schema.__name__))


class _WireField(typing.NamedTuple):
    json_name: str
    field: Field[Any]
    kind: str | None
    inner: Any
    many: bool


RENAMED: Final = {
    "generationIdOrMemberEpoch": "generationId",
    "acceptableRecoveryLagLegacy": "acceptableRecoveryLag",
}
"""Fields by the names of Kafka 4.4, and by those that kio still has for some of them."""


@cache
def _fields(schema: type[Any]) -> tuple[_WireField, ...]:
    hints = typing.get_type_hints(schema)
    known = []
    for one in fields(schema):
        kind = one.metadata.get("kafka_type")
        first, *rest = one.name.split("_")
        name = first + "".join(part.capitalize() for part in rest)
        if kind is not None and kind.startswith(("timedelta", "datetime")):
            name += "Ms"
        hint = hints[one.name]
        known.append(_WireField(name, one, kind, _dataclass_in(hint), _is_tuple(hint)))
    return tuple(known)


def _dataclass_in(hint: Any) -> Any:
    if is_dataclass(hint):
        return hint
    return next((found for part in typing.get_args(hint) if (found := _dataclass_in(part)) is not None), None)


def _is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple or any(typing.get_origin(part) is tuple for part in typing.get_args(hint))


def _build(schema: Any, body: Json, path: str) -> Any:
    known = _fields(schema)
    names = {one.json_name for one in known}
    for newer, older in RENAMED.items():
        if newer in body and older in names:
            body = {older if name == newer else name: value for name, value in body.items()}
    surplus = body.keys() - names
    if surplus:
        raise NoSuchField(f"{path} v{schema.__version__} has no field {', '.join(sorted(surplus))}")
    values = {}
    for one in known:
        where = f"{path}.{one.json_name}"
        if one.json_name in body:
            values[one.field.name] = _value(one, body[one.json_name], where)
        elif one.field.default is MISSING and one.field.default_factory is MISSING:
            raise NoSuchField(f"{where} is missing")
    return schema(**values)


def _value(one: _WireField, value: Any, where: str) -> Any:
    if value is None:
        return None
    if one.many:
        return tuple(_scalar(one, item, f"{where}.{index}") for index, item in enumerate(value))
    return _scalar(one, value, where)


def _scalar(one: _WireField, value: Any, where: str) -> Any:
    if one.inner is not None:
        return _build(one.inner, value, where)
    match one.kind:
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else _EPOCH + timedelta(milliseconds=value)
        case "bytes" | "records":
            return base64.b64decode(value)
        case "uuid":
            return None if value == ZERO_UUID else uuid.UUID(bytes=base64.urlsafe_b64decode(value + "=="))
        case "error_code":
            return ErrorCode(value)
    return value
