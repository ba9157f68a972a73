"""The base of every message: frozen, camelCase in JSON, unknown fields refused, bytes as base64, versions checked.

A field that not every version carries is marked with :class:`In`. A request that fills such a field in a version
without it is refused (Kafka's own serializer refuses it too); a response leaves it out.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, StringConstraints, ValidationInfo
from pydantic.alias_generators import to_camel

Int8 = Annotated[int, Field(ge=-(2**7), le=2**7 - 1)]
Int16 = Annotated[int, Field(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


def _bytes_from_base64(value: object, info: ValidationInfo) -> object:
    if info.mode != "json" or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise ValueError(f"expected base64 in the standard alphabet with padding: {problem}") from None


def _bytes_to_base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode("ascii")


Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes_from_base64),
    PlainSerializer(_bytes_to_base64, return_type=str, when_used="json"),
]
"""Bytes in Python, base64 with the standard alphabet and padding in JSON, as Kafka's own JSON has them."""

KafkaUuid = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22}$")]
"""A topic id as Kafka prints it: 16 bytes in 22 characters of URL-safe base64 without padding."""

ZERO_UUID: Final = "A" * 22


class TopicPartition(NamedTuple):
    """A partition of a topic. Equal to, and hashed like, the plain tuple ``(topic, partition)``."""

    topic: str
    partition: int


class In(NamedTuple):
    """The versions of its message that carry a field: from ``since`` up to and including ``until`` (none: the newest).

    ``needed`` marks a request field without a default: a request of these versions must have it. ``nullable`` is the
    first version in which the field may be null, where that is not the first that carries it.
    """

    since: int
    until: int | None = None
    needed: bool = False
    nullable: int | None = None

    def carries(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def __str__(self) -> str:
        return f"v{self.since}+" if self.until is None else f"v{self.since} to v{self.until}"


class WrongVersion(ValueError):
    """A field is filled that this version of the message does not carry, or one is missing that it must have."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Struct(BaseModel):
    """A part of a message. Frozen; Python names are snake_case, JSON names Kafka's camelCase."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class _Versioned(NamedTuple):
    """What of one model depends on the version: its own marked fields and the fields that hold such models."""

    marked: tuple[tuple[str, str, In, object], ...]
    nested: tuple[tuple[str, str, type[Struct]], ...]


@cache
def _versioned(model: type[Struct]) -> _Versioned:
    marked: list[tuple[str, str, In, object]] = []
    nested: list[tuple[str, str, type[Struct]]] = []
    for name, info in model.model_fields.items():
        alias = info.alias or name
        marked += [(name, alias, mark, info.get_default()) for mark in info.metadata if isinstance(mark, In)]
        inner = _struct_in(info.annotation)
        if inner is not None and (_versioned(inner).marked or _versioned(inner).nested):
            nested.append((name, alias, inner))
    return _Versioned(tuple(marked), tuple(nested))


def _struct_in(annotation: Any) -> type[Struct] | None:
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    for argument in get_args(annotation):
        found = _struct_in(argument)
        if found is not None:
            return found
    return None


def _each(value: Any) -> tuple[Struct, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


@cache
def _exclusions(model: type[Struct], version: int) -> dict[str, Any]:
    """What pydantic must leave out to write ``model`` in this version, in pydantic's own ``exclude`` form."""
    marked, nested = _versioned(model)
    left_out: dict[str, Any] = {name: True for name, _, mark, _ in marked if not mark.carries(version)}
    for name, _, inner in nested:
        inside = _exclusions(inner, version)
        if inside and name not in left_out:
            left_out[name] = {"__all__": inside}
    return left_out


@cache
def _needs_check(model: type[Struct], version: int) -> bool:
    marked, nested = _versioned(model)
    return any(
        mark.needed or not mark.carries(version) or (mark.nullable is not None and version < mark.nullable)
        for _, _, mark, _ in marked
    ) or any(_needs_check(inner, version) for _, _, inner in nested)


def _check_version(message: Struct, version: int, path: str) -> None:
    marked, nested = _versioned(type(message))
    for name, alias, mark, default in marked:
        if not mark.carries(version):
            if getattr(message, name) != default:
                raise WrongVersion(path + alias, f"only {mark} carries it, and this request says v{version}")
        elif mark.needed and name not in message.model_fields_set:
            raise WrongVersion(path + alias, f"missing; v{version} must have it")
        elif mark.nullable is not None and version < mark.nullable and getattr(message, name) is None:
            raise WrongVersion(path + alias, f"may be null from v{mark.nullable} on, and this request says v{version}")
    for name, alias, inner in nested:
        if _needs_check(inner, version):
            for index, part in enumerate(_each(getattr(message, name))):
                _check_version(part, version, f"{path}{alias}.{index}.")


class Message(Struct):
    """A whole request or response, with the JSON it travels as."""

    def to_json(self, version: int) -> bytes:
        """The message as ``version`` of it is written: compact JSON, only the fields that this version carries."""
        left_out = _exclusions(type(self), version)
        if not left_out:
            return self.__pydantic_serializer__.to_json(self)
        return self.__pydantic_serializer__.to_json(self, exclude=left_out)

    @classmethod
    def from_json(cls, body: bytes | str) -> Self:
        """Read a message from JSON. Raises ``pydantic.ValidationError`` for anything that is not exactly one."""
        message: Self = cls.__pydantic_validator__.validate_json(body, by_alias=True, by_name=False)
        return message


class Request(Message):
    """What a client asks."""

    @classmethod
    def parse(cls, body: bytes | str, version: int) -> Self:
        """Read a request of this version from JSON.

        Raises ``pydantic.ValidationError`` when the JSON is not this message and :class:`WrongVersion` when it is one
        of another version.
        """
        message = cls.from_json(body)
        if _needs_check(cls, version):
            _check_version(message, version, "")
        return message

    def check_version(self, version: int) -> None:
        """Raise :class:`WrongVersion` when this version of the message could not carry what is filled in."""
        if _needs_check(type(self), version):
            _check_version(self, version, "")


class Response(Message):
    """What the coordinator answers."""
