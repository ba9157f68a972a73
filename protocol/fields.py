"""Fields of messages and records: name and type on the wire, versions, the kind of thing it names.

It is read from the models, which stay the one place where a field is written down. The version checks and the
requests' entities are made from it, and so can a codec be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Entity, In, WireType

M = TypeVar("M")
FieldType: TypeAlias = WireType | type

ALL_VERSIONS: Final = In(0)

_PLAIN_TYPES: Final[dict[Any, WireType]] = {
    bool: WireType.BOOL,
    bytes: WireType.BYTES,
    float: WireType.FLOAT64,
    str: WireType.STRING,
    ErrorCode: WireType.INT16,
}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field. ``value_type`` is that of its items where it is an array.

    ``nullable`` is the first version in which it may be null, or none.
    """

    name: str
    alias: str
    value_type: FieldType
    is_array: bool
    versions: In
    nullable: int | None
    entity: Entity | None
    is_required: bool
    default: object
    is_error_code: bool

    @property
    def struct(self) -> type | None:
        """The class of its value or items, if they are structs."""
        return None if isinstance(self.value_type, WireType) else self.value_type


@cache
def fields_of(model: type) -> tuple[FieldSpec, ...]:
    """The fields of a message, a record or a part of one, in the order in which they are written."""
    if issubclass(model, BaseModel):
        return tuple(
            _field(name, info.annotation, info.metadata, info.is_required(), info.default)
            for name, info in model.model_fields.items()
        )
    hints = get_type_hints(model, include_extras=True)
    if issubclass(model, tuple):
        return tuple(_field(name, annotation, (), True, None) for name, annotation in hints.items())
    return tuple(
        _field(field.name, hints[field.name], (), field.default is MISSING, field.default)
        for field in dataclass_fields(cast(Any, model))
    )


@cache
def has_throttle(response: type, version: int) -> bool:
    """Whether a response of this version has a field for a throttle time."""
    return any(each.name == "throttle_time_ms" and each.versions.carries(version) for each in fields_of(response))


def _field(name: str, annotation: Any, metadata: Iterable[Any], is_required: bool, default: object) -> FieldSpec:
    marks = list(metadata)
    is_array = is_nullable = False
    while (origin := get_origin(annotation)) is not None:
        inner = get_args(annotation)
        if origin is Annotated:
            marks += inner[1:]
        elif origin is tuple:
            is_array = True
        elif origin in (Union, UnionType):
            is_nullable |= type(None) in inner
            inner = tuple(each for each in inner if each is not type(None))
        annotation = inner[0]
    versions = _mark(marks, In) or ALL_VERSIONS
    # A nullable field without a first version for it may be null wherever it is carried.
    nullable = versions.since if versions.nullable is None else versions.nullable
    return FieldSpec(
        name=name,
        alias=to_camel(name),
        value_type=_mark(marks, WireType) or _PLAIN_TYPES.get(annotation, annotation),
        is_array=is_array,
        versions=versions,
        nullable=nullable if is_nullable else None,
        entity=_mark(marks, Entity),
        is_required=is_required,
        default=None if is_required else default,
        is_error_code=annotation is ErrorCode,
    )


def _mark(marks: list[Any], of: type[M]) -> M | None:
    return next((mark for mark in marks if isinstance(mark, of)), None)
