"""How much one request may hold: the length of a text, and the number of entries in all its lists together.

The reader of a body bounds its bytes. These limits bound the rest: the time that a request takes, and how much of its
texts is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from rejoin.protocol.fields import fields_of
from rejoin.protocol.types import WireType

MAX_STRING_BYTES: Final = 2**15 - 1
"""Kafka: the length of a string is a 16-bit number, which counts bytes of UTF-8."""

MAX_ENTRIES: Final = 20_000
# Differs: Kafka bounds the bytes of a request alone, and gives each one a thread.

MAX_ANSWER_BYTES: Final = 100 * 2**20
"""The size of one response, but for its record batches: Fetch has limits of its own for those.

It is the default of ``socket.request.max.bytes``, and little more than clients such as librdkafka take.
"""
# Differs: Kafka writes up to 2 GiB.

NO_CHECK_BELOW: Final = 2**15
"""A body of fewer bytes is within both bounds: neither a text nor a list is longer than its JSON."""


class _Bounds(NamedTuple):
    """The fields of a message, or of a part of one, that hold texts or entries: names and aliases."""

    texts: tuple[tuple[str, str], ...]
    text_lists: tuple[tuple[str, str], ...]
    other_lists: tuple[tuple[str, str], ...]
    struct_lists: tuple[tuple[str, str, _Bounds], ...]
    structs: tuple[tuple[str, str, _Bounds], ...]


class _Beyond(Exception):
    """A field is beyond its bound: where it is, from the inside out, and what was expected."""

    def __init__(self, kind: Literal["too_long", "too_many"], expected: str, *path: str | int) -> None:
        super().__init__(expected)
        self.kind = kind
        self.expected = expected
        self.path = list(path)


def check_limits(message: BaseModel) -> None:
    """Raise ``pydantic.ValidationError``, which names the field, for a message that holds too much."""
    try:
        _check(message, _bounds(type(message)), 0)
    except _Beyond as problem:
        error = PydanticCustomError(problem.kind, "{expected}", {"expected": problem.expected})
        details = InitErrorDetails(type=error, loc=tuple(reversed(problem.path)), input=None)
        raise ValidationError.from_exception_data(type(message).__name__, [details]) from None


def _check(part: BaseModel, bounds: _Bounds, entries: int) -> int:
    """Check a message or a part of one; returns how many entries there are so far."""
    for name, alias in bounds.texts:
        _check_text(getattr(part, name), alias)
    for name, alias in bounds.text_lists:
        entries = _count(getattr(part, name), alias, entries)
        for index, text in enumerate(getattr(part, name) or ()):
            _check_text(text, index, alias)
    for name, alias in bounds.other_lists:
        entries = _count(getattr(part, name), alias, entries)
    for name, alias, inner in bounds.struct_lists:
        entries = _count(getattr(part, name), alias, entries)
        for index, each in enumerate(getattr(part, name) or ()):
            try:
                entries = _check(each, inner, entries)
            except _Beyond as problem:
                problem.path += [index, alias]
                raise
    for name, alias, inner in bounds.structs:
        if (each := getattr(part, name)) is not None:
            try:
                entries = _check(each, inner, entries)
            except _Beyond as problem:
                problem.path.append(alias)
                raise
    return entries


def _count(values: Sequence[Any] | None, alias: str, entries: int) -> int:
    entries += len(values or ())
    if entries > MAX_ENTRIES:
        raise _Beyond("too_many", f"expected {most_entries(MAX_ENTRIES)}", alias)
    return entries


def most_entries(most: int) -> str:
    """How many entries there may be, in words."""
    return f"at most {most:,} entries in one request"


def _check_text(text: str | None, *path: str | int) -> None:
    # A character takes up to four bytes.
    if text is not None and 4 * len(text) > MAX_STRING_BYTES and (size := len(text.encode())) > MAX_STRING_BYTES:
        raise _Beyond("too_long", f"expected at most {MAX_STRING_BYTES:,} bytes in UTF-8, not {size:,}", *path)


@cache
def _bounds(model: type[BaseModel]) -> _Bounds:
    fields = fields_of(model)
    texts = [field for field in fields if field.value_type is WireType.STRING]
    structs = [(field, cast(type[BaseModel], field.struct)) for field in fields if field.struct is not None]
    return _Bounds(
        tuple((field.name, field.alias) for field in texts if not field.is_array),
        tuple((field.name, field.alias) for field in texts if field.is_array),
        tuple(
            (field.name, field.alias)
            for field in fields
            if field.is_array and field.struct is None and field.value_type is not WireType.STRING
        ),
        tuple((field.name, field.alias, _bounds(struct)) for field, struct in structs if field.is_array),
        tuple((field.name, field.alias, _bounds(struct)) for field, struct in structs if not field.is_array),
    )
