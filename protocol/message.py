"""The base of every message: frozen, camelCase in JSON, unknown fields refused, versions checked.

A field that not every version carries is marked with :class:`In`. A request that fills such a field in a version
without it is refused (Kafka's own serializer refuses it too); a response leaves it out.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import ALL_VERSIONS, FieldSpec, fields_of
from rejoin.protocol.limits import NO_CHECK_BELOW, check_limits


class WrongVersion(ValueError):
    """A field is filled that this version of the message does not carry, or one is missing that it must have."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


CAMEL_CASE: Final = ConfigDict(
    frozen=True,
    extra="forbid",
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    serialize_by_alias=True,
    # Building a model costs ten times as much as declaring it, and a process needs few of them.
    defer_build=True,
)
"""A model that is frozen and takes no unknown fields; Python names are snake_case, JSON names camelCase."""


class Struct(BaseModel):
    """A part of a message or of a record. Frozen; Python names are snake_case, JSON names Kafka's camelCase."""

    model_config = ConfigDict(**CAMEL_CASE, strict=True)

    IS_REPEATED: ClassVar[bool] = False
    """Whether a response may hold the same object many times: a request may repeat a name. It is encoded once."""

    def to_json(self, version: int) -> bytes:
        """The struct as ``version`` of it is written: compact JSON, only the fields that this version carries."""
        left_out = _exclusions(type(self), version)
        if not left_out:
            return self.__pydantic_serializer__.to_json(self)
        return self.__pydantic_serializer__.to_json(self, exclude=left_out)

    @classmethod
    def from_json(cls, body: bytes | str) -> Self:
        """Read a struct from JSON. Raises ``pydantic.ValidationError`` for anything that is not exactly one."""
        message: Self = cls.__pydantic_validator__.validate_json(body, by_alias=True, by_name=False)
        return message


class Request(Struct):
    """A client's request."""

    @classmethod
    def parse(cls, body: bytes | str, version: int) -> Self:
        """Read a request of this version from JSON.

        Raises ``pydantic.ValidationError`` when the JSON is not this message or holds too much, and
        :class:`WrongVersion` when it is one of another version.
        """
        message = cls.from_json(body)
        if len(body) >= NO_CHECK_BELOW:
            check_limits(message)
        message.check_version(version)
        return message

    def check_version(self, version: int) -> None:
        """Raise :class:`WrongVersion` when this version of the message could not carry what is filled in."""
        check = _version_check(type(self), version)
        if check is not None:
            _check_version(self, check, version)

    def fits(self, version: int) -> bool:
        """Whether this version can carry all that is filled in. What it must have besides is written as its default."""
        check = _version_check(type(self), version)
        try:
            if check is not None:
                _check_version(self, check, version, is_complete=False)
        except WrongVersion:
            return False
        return True

    @abstractmethod
    def error_response(self, version: int, error: ErrorCode) -> Response:
        """The response that refuses the whole request, with the error where this version has room for one.

        Kafka: AbstractRequest.getErrorResponse.
        """


class Response(Struct):
    """The coordinator's response."""


class _VersionedFields(NamedTuple):
    """Parts of a model that depend on the version: its own marked fields, and fields that hold such models."""

    marked: tuple[FieldSpec, ...]
    nested: tuple[FieldSpec, ...]


@cache
def _versioned(model: type[BaseModel]) -> _VersionedFields:
    fields = fields_of(model)
    return _VersionedFields(
        tuple(field for field in fields if field.versions is not ALL_VERSIONS),
        tuple(field for field in fields if field.struct is not None and any(_versioned(field.struct))),
    )


def _each(value: Any) -> tuple[BaseModel, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


@cache
def _exclusions(model: type[BaseModel], version: int) -> set[str] | dict[str, Any]:
    """Fields to leave out when ``model`` is written in this version, in the form of pydantic's ``exclude``."""
    marked, nested = _versioned(model)
    left_out: set[str] = {field.name for field in marked if not field.versions.carries(version)}
    inside: dict[str, Any] = {}
    for field in nested:
        of_struct = _exclusions(cast(type[BaseModel], field.struct), version)
        if of_struct and field.name not in left_out:
            inside[field.name] = {"__all__": of_struct} if field.is_array else of_struct
    # A set takes pydantic half the time that a dict does.
    return inside | dict.fromkeys(left_out, True) if inside else left_out


class _VersionCheck(NamedTuple):
    """Checks of a message or a part of one in one version."""

    absent: tuple[FieldSpec, ...]
    needed: tuple[FieldSpec, ...]
    not_null: tuple[FieldSpec, ...]
    nested: tuple[tuple[FieldSpec, _VersionCheck], ...]


@cache
def _version_check(model: type[BaseModel], version: int) -> _VersionCheck | None:
    """The checks of a model; none if every message passes."""
    marked, nested = _versioned(model)
    carried = [field for field in marked if field.versions.carries(version)]
    inner = [(field, _version_check(cast(type[BaseModel], field.struct), version)) for field in nested]
    check = _VersionCheck(
        tuple(field for field in marked if not field.versions.carries(version)),
        tuple(field for field in carried if field.versions.needed),
        tuple(field for field in carried if field.nullable is not None and version < field.nullable),
        tuple((field, of_struct) for field, of_struct in inner if of_struct is not None),
    )
    return check if any(check) else None


def _check_version(message: BaseModel, check: _VersionCheck, version: int, *, is_complete: bool = True) -> None:
    for field in check.absent:
        if getattr(message, field.name) != field.default:
            raise WrongVersion(field.alias, f"only {field.versions} carries it, and this request says v{version}")
    for field in check.needed:
        if is_complete and field.name not in message.model_fields_set:
            raise WrongVersion(field.alias, f"missing; v{version} must have it")
    for field in check.not_null:
        if getattr(message, field.name) is None:
            text = f"may be null from v{field.nullable} on, and this request says v{version}"
            raise WrongVersion(field.alias, text)
    for field, of_struct in check.nested:
        for index, part in enumerate(_each(getattr(message, field.name))):
            try:
                _check_version(part, of_struct, version, is_complete=is_complete)
            except WrongVersion as problem:
                raise WrongVersion(f"{field.alias}.{index}.{problem.field}", problem.problem) from None
