"""How much memory a value takes, about: enough to bound what is kept of requests that may be large."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

_OBJECT_BYTES: Final = 64
_REFERENCE_BYTES: Final = 8


def size_of(value: Any) -> int:
    """The bytes of a value and of all that it holds."""
    if value is None or isinstance(value, (bool, int, float, Enum)):
        return 8
    if isinstance(value, (str, bytes, bytearray)):
        return _OBJECT_BYTES + len(value)
    if isinstance(value, Mapping):
        return _OBJECT_BYTES + sum(size_of(key) + size_of(held) for key, held in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        # Answers hold one object for each name that a request repeats: measured each time, it costs seconds.
        distinct = {id(held): held for held in value}.values()
        return _OBJECT_BYTES + _REFERENCE_BYTES * len(value) + sum(map(size_of, distinct))
    fields = getattr(value, "__dict__", None)
    if fields is not None:
        return _OBJECT_BYTES + sum(map(size_of, fields.values()))
    slots = getattr(type(value), "__slots__", ())
    return _OBJECT_BYTES + sum(size_of(getattr(value, name, None)) for name in slots)
