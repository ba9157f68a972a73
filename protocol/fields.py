"""What each field of a message or record is: its name and type on the wire, its versions, what it names.

It is read from the models, which stay the one place where a field is written down. The version checks and the
requests' entities are made from it, and so can a codec be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Entity, In, WireType

M = TypeVar("M")
FieldType: TypeAlias = WireType | type[BaseModel]

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

    @property
    def struct(self) -> type[BaseModel] | None:
        """The model of its value or items, if they are structs."""
        return None if isinstance(self.value_type, WireType) else self.value_type


@cache
def fields_of(model: type[BaseModel]) -> tuple[FieldSpec, ...]:
    """The fields of a message, a record or a part of one, in the order in which they are written."""
    return tuple(_field(model, name) for name in model.model_fields)


def _field(model: type[BaseModel], name: str) -> FieldSpec:
    info = model.model_fields[name]
    marks = list(info.metadata)
    is_array = is_nullable = False
    annotation: Any = info.annotation
    while (origin := get_origin(annotation)) is not None:
        inner = get_args(annotation)
        if origin is Annotated:
            marks += inner[1:]
        elif origin is tuple:
            is_array = True
        elif origin in (Union, UnionType):
            inner = tuple(each for each in inner if each is not type(None))
            is_nullable = True
        annotation = inner[0]
    versions = _mark(marks, In) or ALL_VERSIONS
    # A nullable field without a first version for it may be null wherever it is carried.
    nullable = versions.since if versions.nullable is None else versions.nullable
    return FieldSpec(
        name=name,
        alias=info.alias or name,
        value_type=_mark(marks, WireType) or _PLAIN_TYPES.get(annotation, annotation),
        is_array=is_array,
        versions=versions,
        nullable=nullable if is_nullable else None,
        entity=_mark(marks, Entity),
        is_required=info.is_required(),
        default=None if info.is_required() else info.get_default(),
    )


def _mark(marks: list[Any], of: type[M]) -> M | None:
    return next((mark for mark in marks if isinstance(mark, of)), None)
