"""The size of a response in JSON, known before it is written: pydantic writes all of it, however much that is."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel

from rejoin.protocol.fields import fields_of
from rejoin.protocol.limits import MAX_ANSWER_BYTES
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.errors import ResponseTooLarge

_NUMBER: Final = 6
"""A number and its comma, on average. Sizes here are within a factor of three for most responses."""
_PUNCTUATION: Final = 4
"""The quotes, colon and comma of a field."""


class _Shape(NamedTuple):
    """Fields that determine a struct's size. ``fixed`` is the size of all but texts and lists."""

    fixed: int
    texts: tuple[str, ...]
    binary: tuple[str, ...]
    plain_lists: tuple[tuple[str, bool], ...]
    """Lists of texts or numbers, with whether they are texts."""
    structs: tuple[tuple[str, _Shape, bool], ...]
    """Structs, with whether they are in a list."""
    is_repeated: bool


def check_json_size(response: BaseModel, version: int, most_bytes: int = MAX_ANSWER_BYTES) -> None:
    """Raise :class:`ResponseTooLarge` for a response that is larger than one may be, record batches not counted."""
    shape = _shape(type(response), version)
    if (shape.structs or shape.plain_lists) and _size(response, shape, {}, most_bytes) > most_bytes:
        raise ResponseTooLarge(most_bytes)


@cache
def _shape(model: type[BaseModel], version: int) -> _Shape:
    fields = [spec for spec in fields_of(model) if spec.versions.carries(version)]
    plain = [spec for spec in fields if not spec.is_array and spec.struct is None]
    return _Shape(
        2 + sum(len(spec.alias) + _PUNCTUATION + _NUMBER for spec in fields),
        tuple(spec.name for spec in plain if spec.value_type is WireType.STRING),
        tuple(spec.name for spec in plain if spec.value_type is WireType.BYTES),
        tuple(
            (spec.name, spec.value_type is WireType.STRING) for spec in fields if spec.is_array and spec.struct is None
        ),
        tuple(
            (spec.name, _shape(cast(type[BaseModel], spec.struct), version), spec.is_array)
            for spec in fields
            if spec.struct is not None
        ),
        getattr(model, "IS_REPEATED", False),
    )


def _size(part: Any, shape: _Shape, known: dict[int, int], most_bytes: int) -> int:
    """The size of a struct; those of repeated objects are ``known`` by their ids."""
    if shape.is_repeated and (before := known.get(id(part))) is not None:
        return before
    fields = part.__dict__
    size = shape.fixed
    for name in shape.texts:
        size += len(fields[name] or "")
    for name in shape.binary:
        size += len(fields[name] or b"") * 4 // 3
    for name, is_text in shape.plain_lists:
        values = fields[name] or ()
        size += len(values) * _NUMBER
        if is_text:
            size += sum(map(len, values))
    for name, inner, is_list in shape.structs:
        value = fields[name]
        for each in () if value is None else value if is_list else (value,):
            size += 1 + _size(each, inner, known, most_bytes)
            if size > most_bytes:
                raise ResponseTooLarge(most_bytes)
    if shape.is_repeated:
        known[id(part)] = size
    return size
