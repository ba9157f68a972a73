"""Data in keys and values of records: slotted dataclasses whose JSON is written field by field.

A coordinator makes one for each offset that is committed, and knows what it puts in. So they are validated when they
are read from a log and not when they are made: pydantic models cost four times as much. What is made does not change.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from pydantic import ConfigDict

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import CAMEL_CASE
from rejoin.protocol.types import WireType

Writer: TypeAlias = Callable[[Any], str]
"""Makes JSON of a value."""


class RecordData:
    """The fields of a key or a value, marked with the versions that carry them as those of messages are."""

    __slots__ = ()
    __pydantic_config__: Final = ConfigDict(**{**CAMEL_CASE, "frozen": False, "strict": True})

    def to_json(self, version: int) -> str:
        """Compact JSON with the fields of this version, as pydantic would write it."""
        return writer_of(type(self), version)(self)


_WRITERS: Final[dict[tuple[type, int], Writer]] = {}


def writer_of(data: type, version: int) -> Writer:
    """The JSON writer of a class of data in one version."""
    write = _WRITERS.get((data, version))
    if write is None:
        write = _WRITERS[data, version] = _compiled(data, version)
    return write


def _compiled(data: type, version: int) -> Writer:
    """One f-string of all fields, compiled as ``dataclass`` compiles its methods. One with a tag comes last."""
    writers: dict[str, Writer] = {}
    parts: list[str] = []
    tagged = ""
    for spec in fields_of(data):
        if not spec.versions.carries(version):
            continue
        value = f"data.{spec.name}"
        if spec.versions.tag is not None:
            writers[f"write_{spec.name}"] = _tagged(spec, version)
            tagged += f"{{write_{spec.name}({value})}}"
            continue
        if spec.value_type not in _NUMBERS or spec.is_array or spec.nullable is not None:
            writers[f"write_{spec.name}"] = _writer(spec, version)
            value = f"write_{spec.name}({value})"
        parts.append(f'"{spec.alias}":{{{value}}}')
    fields = ",".join(parts)
    write: Writer = eval(f"lambda data: f'{{{{{fields}{tagged}}}}}'", writers)
    return write


def _tagged(spec: FieldSpec, version: int) -> Writer:
    """The writer of a tagged field, which comes after the others and writes nothing for the default."""
    write, default, alias = _writer(spec, version), spec.default, spec.alias
    return lambda value: "" if value == default else f',"{alias}":{write(value)}'


def _writer(spec: FieldSpec, version: int) -> Writer:
    """The writer of a field's value."""
    struct = spec.struct
    write = _PLAIN[spec.value_type] if struct is None else writer_of(struct, version)
    if spec.is_array:
        write = _array(write)
    if spec.nullable is not None:
        return lambda value: "null" if value is None else write(value)
    return write


def _array(write: Writer) -> Writer:
    return lambda values: "[" + ",".join([write(value) for value in values]) + "]"


def _bytes(value: bytes) -> str:
    return f'"{binascii.b2a_base64(value, newline=False).decode("ascii")}"'


_NUMBERS: Final = (WireType.INT8, WireType.INT16, WireType.UINT16, WireType.INT32, WireType.INT64)
_PLAIN: Final[dict[Any, Writer]] = {
    WireType.STRING: encode_basestring,
    WireType.UUID: encode_basestring,
    WireType.BYTES: _bytes,
    **dict.fromkeys(_NUMBERS, str),
}
