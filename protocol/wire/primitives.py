"""Kafka's primitive types as bytes, as far as one ``struct`` format does not say them."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from rejoin.protocol.limits import MAX_STRING_BYTES
from rejoin.protocol.types import WireType

FORMATS: Final[dict[object, str]] = {
    WireType.BOOL: "?",
    WireType.INT8: "b",
    WireType.INT16: "h",
    WireType.UINT16: "H",
    WireType.INT32: "i",
    WireType.INT64: "q",
    WireType.FLOAT64: "d",
    WireType.UUID: "16s",
}
"""The types of fixed size."""

_MORE: Final = 0x80
_SEVEN_BITS: Final = 0x7F
_LONGEST_SHIFT: Final = 28
_MAX_INT32: Final = 2**31 - 1

MAX_TAGGED_FIELDS: Final = 127
"""How many tagged fields one struct may have. Kafka's messages have up to four."""
# Differs: Kafka bounds the bytes of a request alone. Empty tagged fields have two bytes, and each costs a step.

SMALL_VARINTS: Final = tuple(bytes([number]) for number in range(_MORE))
"""The unsigned varints of one byte."""


class Malformed(Exception):
    """The bytes of a field are malformed; the caller knows the field."""


def read_long_varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint of several bytes: its value, and where it ends."""
    value, shift = first & _SEVEN_BITS, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & _SEVEN_BITS) << shift
        if byte < _MORE:
            break
        shift += 7
        if shift > _LONGEST_SHIFT:
            raise Malformed("an unsigned varint of more than five bytes")
    if value > _MAX_INT32:
        raise Malformed(f"length or tag {value:,}")
    return value, at


def write_varint(number: int) -> bytes:
    """An unsigned varint."""
    if number < _MORE:
        return SMALL_VARINTS[number]
    written = bytearray()
    while number >= _MORE:
        written.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    written.append(number)
    return bytes(written)


def string_varint(number: int) -> bytes:
    """The length of a compact string, plus one."""
    if number > MAX_STRING_BYTES + 1:
        raise Malformed(f"a string of {number - 1:,} bytes")
    return write_varint(number)


def skip_tagged_fields(data: bytes, at: int) -> int:
    """Step over a section of tagged fields that are unknown here; returns where it ends."""
    count, at = _read_varint(data, at)
    if count > MAX_TAGGED_FIELDS:
        raise Malformed(f"more than {MAX_TAGGED_FIELDS} tagged fields")
    for _ in range(count):
        _, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        at += size
        if at > len(data):
            raise Malformed(f"a tagged field of length {size:,}, but {len(data) - at + size:,} left")
    return at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    return (first, at + 1) if first < _MORE else read_long_varint(data, at + 1, first)


@lru_cache(maxsize=4_096)
def uuid_text(data: bytes) -> str:
    """A uuid as Kafka prints it."""
    return urlsafe_b64encode(data)[:22].decode("ascii")


@lru_cache(maxsize=4_096)
def uuid_bytes(text: str) -> bytes:
    """The sixteen bytes of a uuid."""
    data = urlsafe_b64decode(text + "==")
    if len(data) != 16:
        raise Malformed(f"{text!r}")
    return data


_SHORT_ARRAY: Final = 16


def array_reader(code: str) -> Callable[[bytes, int, int], tuple[Any, ...]]:
    """A function that reads ``count`` numbers of one format at a position."""
    short = [struct.Struct(f">{count}{code}").unpack_from for count in range(_SHORT_ARRAY)]

    def read(data: bytes, at: int, count: int) -> tuple[Any, ...]:
        if count < _SHORT_ARRAY:
            return short[count](data, at)
        return struct.unpack_from(f">{count}{code}", data, at)

    return read


def array_writer(code: str) -> Callable[[tuple[Any, ...]], bytes]:
    """A function that writes numbers of one format."""
    short = [struct.Struct(f">{count}{code}").pack for count in range(_SHORT_ARRAY)]

    def write(values: tuple[Any, ...]) -> bytes:
        count = len(values)
        return short[count](*values) if count < _SHORT_ARRAY else struct.pack(f">{count}{code}", *values)

    return write


ARRAY_READERS: Final = {code: array_reader(code) for code in "bhiqd"}
ARRAY_WRITERS: Final = {code: array_writer(code) for code in "bhiqd"}
