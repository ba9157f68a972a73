"""Readers of messages: source text made from a model for one version, and compiled.

A reader is one function without calls into this package for what is common: fields of fixed size that follow each other
are one ``struct``, with the length of the string or array behind them; loops are nested as arrays are. Every length is
checked against what is left, and an array's entries against a budget, before anything is made of them. Values need no
validation after that: the wire bounds integers itself.

Where a read fails, the line of the source says in which field: nothing is done for it while all goes well.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import FieldSpec
from rejoin.protocol.limits import MAX_STRING_BYTES, most_entries
from rejoin.protocol.types import WireType
from rejoin.protocol.unvalidated import SLOT_SETTERS
from rejoin.protocol.wire.errors import SchemaError
from rejoin.protocol.wire.primitives import (
    ARRAY_READERS,
    FORMATS,
    MAX_TAGGED_FIELDS,
    Malformed,
    read_long_varint,
    skip_tagged_fields,
    uuid_text,
)
from rejoin.protocol.wire.source import NO_LOCATION, FieldLocation, Layout, Source

Reader: TypeAlias = Callable[[bytes, int], Any]
Path: TypeAlias = tuple[str | tuple[str], ...]

_ERROR_CODES: Final = {int(code): code for code in ErrorCode}
_FAILURES: Final = (struct.error, IndexError, KeyError, UnicodeDecodeError, Malformed)


def compile_reader(model: type[BaseModel], layout: Layout, max_entries: int | None) -> Reader:
    """A function that reads a message from a position to the end of the bytes.

    It raises :class:`~rejoin.protocol.wire.errors.SchemaError`. ``max_entries`` bounds the entries of all arrays
    together; none: the bytes do.
    """
    return _ReaderSource(model, layout, max_entries).compiled()


class _ReaderSource:
    """The source of one reader. ``_run`` are the fields of fixed size that are not read yet."""

    def __init__(self, model: type[BaseModel], layout: Layout, max_entries: int | None) -> None:
        self._model = model
        self._layout = layout
        self._max_entries = max_entries
        set_fields, set_names, set_extra, set_private = SLOT_SETTERS
        self._source = Source(
            {
                "new": object.__new__,
                "new_tuple": tuple.__new__,
                "set_fields": set_fields,
                "set_names": set_names,
                "set_extra": set_extra,
                "set_private": set_private,
                "error_codes": _ERROR_CODES,
                "long_varint": read_long_varint,
                "skip_tags": skip_tagged_fields,
                "uuid_text": uuid_text,
                "Malformed": Malformed,
                "FAILURES": _FAILURES,
                "failure": self._failure,
            }
        )
        self._run: list[tuple[str, str, FieldLocation]] = []
        self._after_run: list[tuple[str, tuple[FieldLocation, ...]]] = []

    def compiled(self) -> Reader:
        source = self._source
        source.line("def read(data, pos):")
        source.indent += 1
        source.line("end = len(data)")
        if self._max_entries is not None:
            source.line(f"left = {self._max_entries}")
        source.line("try:")
        source.indent += 1
        message = self._struct(self._model, ())
        if self._max_entries is None:
            # Kafka: what stands behind a request is ignored. librdkafka 2.16 sends three bytes too many in Metadata 12.
            source.line("if pos != end:")
            source.line("    raise Malformed(f'trailing bytes: {end - pos:,}')", NO_LOCATION)
        source.line(f"return {message}")
        source.indent -= 1
        source.line("except FAILURES as problem:")
        source.line("    raise failure(problem, locals()) from None")
        exec(source.compile(f"read {self._model.__name__} v{self._layout.version}"), source.namespace)
        read: Reader = source.namespace["read"]
        return read

    # --- structs and fields

    def _struct(self, model: type, path: Path) -> str:
        """Read a struct; returns the name of the variable that holds it."""
        layout, source = self._layout, self._source
        variables: dict[str, str] = {}
        for spec in layout.plain(model):
            variables[spec.name] = self._field(spec, (*path, spec.alias))
        if layout.is_flexible:
            self._tagged_fields(model, path, variables)
        self._flush()
        built = source.name("m")
        cls = source.constant("Model", model)
        if issubclass(model, tuple):
            source.line(f"{built} = new_tuple({cls}, ({', '.join(variables.values())}))")
            return built
        names: dict[str, Any] = getattr(model, "model_fields", {})
        given = source.constant("NAMES", set(names))
        values = ", ".join(f"{name!r}: {variables.get(name) or self._default(model, name)}" for name in names)
        source.line(f"{built} = new({cls})")
        source.line(f"set_fields({built}, {{{values}}})")
        source.line(f"set_names({built}, {given}); set_extra({built}, None); set_private({built}, None)")
        return built

    def _default(self, model: type, name: str) -> str:
        infos: dict[str, Any] = getattr(model, "model_fields", {})
        assert not infos[name].is_required(), f"{model.__name__}.{name} is not in every version and has no default"
        return self._source.constant("default", infos[name].get_default())

    def _field(self, spec: FieldSpec, path: Path) -> str:
        """Read a field; returns an expression for its value."""
        if spec.is_array:
            return self._array(spec, path)
        if spec.struct is not None:
            return self._single_struct(spec, spec.struct, path)
        assert isinstance(spec.value_type, WireType)
        if spec.value_type in FORMATS:
            return self._fixed(spec, spec.value_type, path)
        return self._text(spec.value_type, path, self._layout.may_be_null(spec))

    def _fixed(self, spec: FieldSpec, value_type: WireType, path: Path) -> str:
        raw = self._read_later(FORMATS[value_type], FieldLocation(path, value_type.value))
        if spec.is_error_code:
            return self._converted(f"error_codes[{raw}]", FieldLocation(path, "one of Kafka's error codes"))
        return self._converted(f"uuid_text({raw})") if value_type is WireType.UUID else raw

    def _single_struct(self, spec: FieldSpec, model: type, path: Path) -> str:
        if not self._layout.may_be_null(spec):
            return self._struct(model, path)
        source = self._source
        present = self._read_later("b", FieldLocation(path, "-1 for null or 1", 1))
        self._flush()
        value = source.name("v")
        source.line(f"if {present} {'<=' if spec.versions.tag is not None else '<'} 0:")
        source.line(f"    {value} = None")
        source.line("else:")
        source.indent += 1
        source.line(f"{value} = {self._struct(model, path)}")
        source.indent -= 1
        return value

    # --- strings, bytes, arrays

    def _text(self, value_type: WireType, path: Path, may_be_null: bool) -> str:
        source = self._source
        what = FieldLocation(path, value_type.value)
        is_string = value_type is WireType.STRING
        # Kafka: a compact string may be no longer than the others.
        length, null = self._length("h" if is_string else "i", what, MAX_STRING_BYTES if is_string else None)
        stop, value = source.name("stop"), source.name("v")
        if may_be_null:
            source.line(f"if {length} == {null}:")
            source.line(f"    {value} = None")
            source.line("else:")
            source.indent += 1
        size = f"{length} - 1" if self._layout.is_flexible else length
        source.line(f"{stop} = pos + {size}")
        source.line(f"if not pos <= {stop} <= end:")
        source.line(f"    raise Malformed(f'length {{{size}:,}}, but {{end - pos:,}} left')", what)
        read = {WireType.STRING: f"data[pos:{stop}].decode()", WireType.RECORDS: f"memoryview(data)[pos:{stop}]"}
        source.line(f"{value} = {read.get(value_type, f'data[pos:{stop}]')}", what)
        source.line(f"pos = {stop}")
        if may_be_null:
            source.indent -= 1
        return value

    def _length(self, code: str, what: FieldLocation, most: int | None = None) -> tuple[str, int]:
        """Read a length; returns its variable, and what stands for null. A compact length is one more."""
        if not self._layout.is_flexible:
            length = self._read_later(code, what)
            self._flush()
            return length, -1
        return self._varint(what, most), 0

    def _varint(self, what: FieldLocation, most: int | None = None) -> str:
        """Read an unsigned varint now. It must be no more than a length of ``most``."""
        source = self._source
        number = self._read_later("B", what)
        self._flush()
        source.line(f"if {number} > 127:")
        source.line(f"    {number}, pos = long_varint(data, pos, {number})", what)
        if most is not None:
            source.line(f"    if {number} > {most + 1}:")
            source.line(f"        raise Malformed(f'length {{{number} - 1:,}}')", what)
        return number

    def _array(self, spec: FieldSpec, path: Path) -> str:
        source = self._source
        what = FieldLocation(path, "an array")
        count, null = self._length("i", what)
        value = source.name("v")
        if self._layout.may_be_null(spec):
            source.line(f"if {count} == {null}:")
            source.line(f"    {value} = None")
            source.line("else:")
            source.indent += 1
        if self._layout.is_flexible:
            source.line(f"{count} -= 1")
        # Many arrays are empty.
        source.line(f"if {count} == 0:")
        source.line(f"    {value} = ()")
        source.line("else:")
        source.indent += 1
        source.line(f"if not 0 < {count} * {self._layout.least_size(spec.value_type)} <= end - pos:")
        source.line(f"    raise Malformed(f'{{{count}:,}} entries, but bytes left: {{end - pos:,}}')", what)
        if self._max_entries is not None:
            source.line(f"left -= {count}")
            source.line("if left < 0:")
            expected = most_entries(self._max_entries)
            source.line("    raise Malformed('too many entries')", FieldLocation(path, expected))
        self._entries(spec, path, count, value)
        source.indent -= 1
        if self._layout.may_be_null(spec):
            source.indent -= 1
        return value

    def _entries(self, spec: FieldSpec, path: Path, count: str, value: str) -> None:
        source = self._source
        code = FORMATS.get(spec.value_type, "")
        if code in ARRAY_READERS:
            array = f"array_{code}"
            source.namespace[array] = ARRAY_READERS[code]
            source.line(f"{value} = {array}(data, pos, {count})", FieldLocation(path, f"an array of {spec.value_type}"))
            source.line(f"pos += {count} * {struct.calcsize('>' + code)}")
            return
        items = source.name("items")
        source.line(f"{items} = []")
        source.line(f"for _ in range({count}):")
        source.indent += 1
        within = (*path, (items,))
        if spec.struct is not None:
            item = self._struct(spec.struct, within)
        else:
            assert isinstance(spec.value_type, WireType)
            is_fixed = spec.value_type in FORMATS
            item = (
                self._fixed(spec, spec.value_type, within) if is_fixed else self._text(spec.value_type, within, False)
            )
            self._flush()
        source.line(f"{items}.append({item})")
        source.indent -= 1
        source.line(f"{value} = tuple({items})")

    # --- tagged fields

    def _tagged_fields(self, model: type, path: Path, variables: dict[str, str]) -> None:
        source = self._source
        tagged = self._layout.tagged(model)
        what = FieldLocation((*path, "(tagged fields)"), "tagged fields")
        count = self._read_later("B", what)
        self._flush()
        for spec in tagged:
            variables[spec.name] = value = source.name("t")
            source.line(f"{value} = {self._default(model, spec.name)}")
        source.line(f"if {count}:")
        source.indent += 1
        if tagged:
            self._known_tags(tagged, path, variables, count, what)
        else:
            source.line("pos = skip_tags(data, pos - 1)", what)
        source.indent -= 1

    def _known_tags(
        self, tagged: list[FieldSpec], path: Path, variables: dict[str, str], count: str, what: FieldLocation
    ) -> None:
        source = self._source
        source.line(f"if {count} > {MAX_TAGGED_FIELDS}:")
        source.line(f"    raise Malformed('more than {MAX_TAGGED_FIELDS} tagged fields')", what)
        source.line(f"for _ in range({count}):")
        source.indent += 1
        tag, size, stop = self._varint(what), self._varint(what), source.name("stop")
        source.line(f"{stop} = pos + {size}")
        source.line(f"if {stop} > end:")
        source.line(f"    raise Malformed(f'a tagged field of length {{{size}:,}}, but {{end - pos:,}} left')", what)
        for index, spec in enumerate(tagged):
            source.line(f"{'elif' if index else 'if'} {tag} == {spec.versions.tag}:")
            source.indent += 1
            value = self._field(spec, (*path, spec.alias))
            self._flush()
            source.line(f"{variables[spec.name]} = {value}")
            source.line(f"if pos != {stop}:")
            whole = FieldLocation((*path, spec.alias), "a value that fills it")
            source.line("    raise Malformed('shorter or longer than its tagged field')", whole)
            source.indent -= 1
        source.line("else:")
        source.line(f"    pos = {stop}")
        source.indent -= 1

    # --- fields of fixed size

    def _read_later(self, code: str, what: FieldLocation) -> str:
        """Add a field of fixed size to the run; returns its variable."""
        variable = self._source.name("n")
        location = FieldLocation(what.path, what.expected, struct.calcsize(">" + code))
        self._run.append((code, variable, location))
        return variable

    def _converted(self, expression: str, *about: FieldLocation) -> str:
        """A variable for what is made of a field of the run, once that is read."""
        variable = self._source.name("v")
        self._after_run.append((f"{variable} = {expression}", about))
        return variable

    def _flush(self) -> None:
        """Read the run."""
        source = self._source
        if self._run:
            code = "".join(code for code, _, _ in self._run)
            variables = ", ".join(variable for _, variable, _ in self._run)
            about = [location for _, _, location in self._run]
            if code == "B":
                source.line(f"{variables} = data[pos]", *about)
            else:
                source.line(f"{variables}, = {source.struct(code, 'unpack_from')}(data, pos)", *about)
            source.line(f"pos += {struct.calcsize('>' + code)}")
            self._run.clear()
        for line, locations in self._after_run:
            source.line(line, *locations)
        self._after_run.clear()

    # --- failures

    def _failure(self, problem: Exception, variables: dict[str, Any]) -> SchemaError:
        """The error, with its field: the one that the failing line of source is about."""
        assert problem.__traceback__ is not None
        about = self._source.locations[problem.__traceback__.tb_lineno - 1]
        location = about[0] if about else NO_LOCATION
        if isinstance(problem, struct.error):
            left = variables["end"] - variables["pos"]
            for location in about:
                left -= location.size
                if left < 0:
                    break
        field = location.text(variables)
        if isinstance(problem, UnicodeDecodeError):
            return SchemaError(field, f"invalid UTF-8 at byte {problem.start:,}", "a string")
        if isinstance(problem, KeyError):
            return SchemaError(field, f"unknown error code {problem.args[0]}", location.expected)
        if isinstance(problem, Malformed):
            return SchemaError(field, str(problem), location.expected)
        return SchemaError(field, "the bytes end", location.expected)
