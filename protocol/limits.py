"""How much one request may hold: the length of a text, and the number of entries in all its lists together.

A body is bounded in bytes by whoever reads it. These bounds are for what bytes do not bound: the time that a request
takes, and what is kept of its texts.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.types import WireType

MAX_STRING_BYTES: Final = 2**15 - 1
"""Kafka: the length of a string is a 16-bit number, which counts bytes of UTF-8."""

MAX_ENTRIES: Final = 20_000
# Differs: Kafka bounds the bytes of a request alone, and gives each one a thread.

NO_CHECK_BELOW: Final = 2**15
"""A body of fewer bytes is within both bounds: neither a text nor a list is longer than its JSON."""


def check_limits(message: BaseModel) -> None:
    """Raise ``pydantic.ValidationError``, which names the field, for a message that holds too much."""
    _check(message, type(message).__name__, [], 0)


def _check(part: BaseModel, title: str, path: list[str | int], entries: int) -> int:
    """Check a message or a part of one; returns how many entries there are so far."""
    for spec in _bounded(type(part)):
        value: Any = getattr(part, spec.name)
        if value is None:
            continue
        path.append(spec.alias)
        if not spec.is_array:
            values: tuple[Any, ...] = (value,)
        else:
            values = value
            entries += len(values)
            if entries > MAX_ENTRIES:
                raise _refusal(title, path, "too_many", f"expected at most {MAX_ENTRIES:,} entries in one request")
        if spec.struct is not None:
            for index, each in enumerate(values):
                if spec.is_array:
                    path.append(index)
                entries = _check(each, title, path, entries)
                if spec.is_array:
                    path.pop()
        elif spec.value_type is WireType.STRING:
            for index, each in enumerate(values):
                # A character takes up to four bytes.
                if 4 * len(each) > MAX_STRING_BYTES and (size := len(each.encode())) > MAX_STRING_BYTES:
                    where = [*path, index] if spec.is_array else path
                    wanted = f"expected at most {MAX_STRING_BYTES:,} bytes in UTF-8, not {size:,}"
                    raise _refusal(title, where, "too_long", wanted)
        path.pop()
    return entries


def _refusal(title: str, path: list[str | int], kind: str, expected: str) -> ValidationError:
    error = PydanticCustomError(kind, "{expected}", {"expected": expected})
    return ValidationError.from_exception_data(title, [InitErrorDetails(type=error, loc=tuple(path), input=None)])


@cache
def _bounded(model: type[BaseModel]) -> tuple[FieldSpec, ...]:
    """The fields that hold texts or entries, or whose structs do."""
    return tuple(
        spec
        for spec in fields_of(model)
        if spec.is_array or spec.value_type is WireType.STRING or (spec.struct is not None and _bounded(spec.struct))
    )
