"""Common parts of the generated readers and writers: the layout of a message in one version, and source text."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.primitives import FORMATS


@dataclass(frozen=True, slots=True)
class Layout:
    """Fields of a struct in the order in which they are written: those with a tag come last."""

    version: int
    is_flexible: bool

    def plain(self, model: type) -> list[FieldSpec]:
        """The fields that every message of this version has, in order."""
        return [spec for spec in self._carried(model) if not self._is_tagged(spec)]

    def tagged(self, model: type) -> list[FieldSpec]:
        """The fields that are written with their tag, and only if they differ from their default."""
        found = [spec for spec in self._carried(model) if self._is_tagged(spec)]
        return sorted(found, key=lambda spec: spec.versions.tag or 0)

    def may_be_null(self, spec: FieldSpec) -> bool:
        return spec.nullable is not None and spec.nullable <= self.version

    def least_size(self, value_type: WireType | type) -> int:
        """How many bytes a value has at least."""
        if not isinstance(value_type, WireType):
            return self.is_flexible + sum(
                (1 if self.is_flexible else 4) if spec.is_array else self._least_field(spec)
                for spec in self.plain(value_type)
            )
        if value_type in FORMATS:
            return struct.calcsize(">" + FORMATS[value_type])
        if self.is_flexible:
            return 1
        return 2 if value_type is WireType.STRING else 4

    def _least_field(self, spec: FieldSpec) -> int:
        if spec.struct is not None and self.may_be_null(spec):
            return 1
        return self.least_size(spec.value_type)

    def _carried(self, model: type) -> Iterator[FieldSpec]:
        return (spec for spec in fields_of(model) if spec.versions.carries(self.version))

    def _is_tagged(self, spec: FieldSpec) -> bool:
        return self.is_flexible and spec.versions.tag is not None


@dataclass(frozen=True, slots=True)
class FieldLocation:
    """A field that a line of source is about: its path, what it is, how many bytes it has if that is fixed.

    A part of the path that is a tuple names the list whose length is the index.
    """

    path: tuple[str | tuple[str], ...]
    expected: str
    size: int = 0

    def text(self, variables: dict[str, Any]) -> str:
        """The path with the indexes that the loops have reached."""
        text = ""
        for part in self.path:
            if isinstance(part, tuple):
                text += f"[{len(variables.get(part[0], ()))}]"
            else:
                text += f".{part}" if text else part
        return text


NO_LOCATION: Final = FieldLocation((), "the end of the message")


@dataclass(slots=True)
class Source:
    """Source text in the making, and the names that it uses."""

    namespace: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    locations: list[tuple[FieldLocation, ...]] = field(default_factory=list)
    indent: int = 0
    _numbers: int = 0

    def line(self, text: str, *about: FieldLocation) -> None:
        self.lines.append("    " * self.indent + text)
        self.locations.append(about)

    def name(self, stem: str) -> str:
        """A new name."""
        self._numbers += 1
        return f"{stem}_{self._numbers}"

    def constant(self, stem: str, value: object) -> str:
        """A new name for a value."""
        name = self.name(stem)
        self.namespace[name] = value
        return name

    def struct(self, code: str, method: str) -> str:
        """The name of a method of the struct of this format."""
        name = f"{method}_{code.replace('?', 'z')}"
        self.namespace.setdefault(name, getattr(struct.Struct(">" + code), method))
        return name

    def compile(self, title: str) -> CodeType:
        return compile("\n".join(self.lines) + "\n", f"<{title}>", "exec")
