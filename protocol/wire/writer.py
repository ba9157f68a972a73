"""Writers of messages: source text made from a model for one version, and compiled.

A writer collects parts: one ``struct`` for fields of fixed size that follow each other, and the bytes of strings and
record batches as they are. Fields that the version does not carry are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.records.batch_run import BatchRun, whole
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.errors import ResponseTooLarge, SchemaError
from rejoin.protocol.wire.primitives import (
    ARRAY_WRITERS,
    FORMATS,
    SMALL_VARINTS,
    Malformed,
    string_varint,
    uuid_bytes,
    write_varint,
)
from rejoin.protocol.wire.source import NO_LOCATION, FieldLocation, Layout, Source

Part: TypeAlias = bytes | memoryview | BatchRun
PartsWriter: TypeAlias = Callable[[Any], list[Part]]
Writer: TypeAlias = Callable[[Any], bytes]
Path: TypeAlias = tuple[str | tuple[str], ...]

_LOOK_EVERY: Final = 1_024
"""After so many new parts the size of all is compared with the bound."""
_FEW_PARTS: Final = 64
"""So many fixed fields and strings are no more than two megabytes."""
_UNBOUNDED: Final = (WireType.BYTES, WireType.RECORDS)

_FAILURES: Final = (struct.error, AttributeError, KeyError, TypeError, ValueError, Malformed)


def compile_writer(model: type, layout: Layout, most_bytes: int | None = None) -> Writer:
    """A function that writes a message, or the data of a record.

    It raises :class:`~rejoin.protocol.wire.errors.SchemaError`, which is a ``ResponseTooLarge`` for a message of more
    bytes than ``most_bytes``. A message without arrays is no larger than what it was made of, and not measured.
    """
    writer: Writer = _WriterSource(model, layout, most_bytes).compiled("b''.join(parts)")
    return writer


def compile_parts_writer(model: type[BaseModel], layout: Layout) -> PartsWriter:
    """A function that writes a message as parts that follow each other. Record batches are among them, not copied."""
    writer: PartsWriter = _WriterSource(model, layout).compiled("parts")
    return writer


def joined(parts: Iterable[Part]) -> bytes:
    """All parts in one piece."""
    return b"".join([whole(part) for part in parts])


class _WriterSource:
    """The source of one writer.

    ``_run`` are the fields of fixed size that are not written yet, ``_pending`` the parts that are not added yet to
    the list named ``_parts``.
    """

    def __init__(self, model: type, layout: Layout, most_bytes: int | None = None) -> None:
        self._model = model
        self._layout = layout
        self._most_bytes = most_bytes
        self._at_start = ["parts = []"]
        """The statements before all others, where there are arrays."""
        self._source = Source(
            {
                "small": SMALL_VARINTS,
                "varint": write_varint,
                "string_varint": string_varint,
                "uuid_bytes": uuid_bytes,
                "ResponseTooLarge": ResponseTooLarge,
                "FAILURES": _FAILURES,
                "failure": self._failure,
                "grown": partial(_grown, most_bytes=most_bytes or 0),
                "joined": partial(_joined, most_bytes=most_bytes or 0),
            }
        )
        self._run: list[tuple[str, str]] = []
        self._run_locations: list[FieldLocation] = []
        self._pending: list[str] = []
        self._pending_locations: list[FieldLocation] = []
        self._parts = "parts"
        self._is_one_piece = True

    def compiled(self, result: str) -> Any:
        source = self._source
        source.line("def write(message):")
        source.indent += 1
        source.line("try:")
        source.indent += 1
        source.line("pass")
        first = len(source.lines) - 1
        self._struct(self._model, "message", ())
        self._finish(result)
        if not self._is_one_piece:
            source.lines[first] = source.lines[first].replace("pass", "; ".join(self._at_start))
        source.indent -= 1
        if self._most_bytes is not None:
            source.line("except ResponseTooLarge:")
            source.line("    raise")
        source.line("except FAILURES as problem:")
        source.line("    raise failure(problem) from None")
        exec(source.compile(f"write {self._model.__name__} v{self._layout.version}"), source.namespace)
        return source.namespace["write"]

    def _finish(self, result: str) -> None:
        """Return the parts. A message without arrays is made of all its parts at once."""
        self._end_run()
        if self._is_one_piece and result != "parts":
            whole = self._pending[0] if len(self._pending) == 1 else f"b''.join(({', '.join(self._pending) or '()'}))"
            self._source.line(f"return {whole}", *self._pending_locations)
            return
        self._flush()
        if self._most_bytes is not None and result != "parts":
            few = "" if _has_unbounded(self._model) else f" if len(parts) > {_FEW_PARTS} else b''.join(parts)"
            result = f"joined(parts){few}"
        self._source.line(f"return {result}")

    # --- structs and fields

    def _struct(self, model: type, variable: str, path: Path) -> None:
        fields = variable
        if issubclass(model, BaseModel):
            fields = self._source.name("f")
            self._source.line(f"{fields} = {variable}.__dict__", FieldLocation(path, "a struct"))
        for spec in self._layout.plain(model):
            self._field(spec, _value_of(model, fields, spec), (*path, spec.alias))
        if self._layout.is_flexible:
            self._tagged_fields(self._layout.tagged(model), model, fields, path)

    def _field(self, spec: FieldSpec, value: str, path: Path) -> None:
        if spec.is_array:
            self._array(spec, value, path)
        elif spec.struct is not None:
            self._single_struct(spec, spec.struct, value, path)
        else:
            assert isinstance(spec.value_type, WireType)
            self._value(spec.value_type, value, path, self._layout.may_be_null(spec))

    def _value(self, value_type: WireType, value: str, path: Path, may_be_null: bool) -> None:
        what = FieldLocation(path, value_type.value)
        if value_type is WireType.UUID:
            self._fixed("16s", f"uuid_bytes({value})", what)
        elif value_type in FORMATS:
            self._fixed(FORMATS[value_type], value, what)
        else:
            self._text(value_type, value, what, may_be_null)

    def _single_struct(self, spec: FieldSpec, model: type, value: str, path: Path) -> None:
        source = self._source
        variable = source.name("v")
        source.line(f"{variable} = {value}", FieldLocation(path, "a struct"))
        if not self._layout.may_be_null(spec):
            self._struct(model, variable, path)
            return
        self._flush()
        source.line(f"if {variable} is None:")
        # Kafka: MessageDataGenerator. A tagged null is a varint of 0.
        null = "b'\\0'" if spec.versions.tag is not None else "b'\\xff'"
        source.line(f"    {self._parts}.append({null})")
        source.line("else:")
        source.indent += 1
        self._fixed("b", "1", FieldLocation(path, "a struct"))
        self._struct(model, variable, path)
        self._flush()
        source.indent -= 1

    # --- strings, bytes, arrays

    def _text(self, value_type: WireType, value: str, what: FieldLocation, may_be_null: bool) -> None:
        source, is_flexible = self._source, self._layout.is_flexible
        is_string = value_type is WireType.STRING
        data, length = source.name("s"), source.name("n")
        size = f"len({data}) + 1" if is_flexible else f"len({data})"
        source.line(f"{data} = {value}", what)
        if may_be_null:
            source.line(f"if {data} is None:")
            source.line(f"    {data} = b''; {length} = {0 if is_flexible else -1}")
            source.line("else:")
            source.indent += 1
        if is_string:
            source.line(f"{data} = {data}.encode()", what)
        source.line(f"{length} = {size}", what)
        if may_be_null:
            source.indent -= 1
        if is_flexible:
            longer = "string_varint" if is_string else "varint"
            self._part(f"small[{length}] if {length} < 128 else {longer}({length})", what)
        else:
            self._fixed("h" if is_string else "i", length, what)
        self._part(data, what)

    def _array(self, spec: FieldSpec, value: str, path: Path) -> None:
        source, is_flexible = self._source, self._layout.is_flexible
        what = FieldLocation(path, "an array")
        values, count = source.name("v"), source.name("n")
        source.line(f"{values} = {value}", what)
        size = f"len({values}) + 1" if is_flexible else f"len({values})"
        if self._layout.may_be_null(spec):
            source.line(f"if {values} is None:")
            source.line(f"    {values} = (); {count} = {0 if is_flexible else -1}")
            source.line("else:")
            source.line(f"    {count} = {size}", what)
        else:
            source.line(f"{count} = {size}", what)
        if is_flexible:
            self._part(f"small[{count}] if {count} < 128 else varint({count})", what)
        else:
            self._fixed("i", count, what)
        self._entries(spec, values, path)

    def _entries(self, spec: FieldSpec, values: str, path: Path) -> None:
        source = self._source
        code = FORMATS.get(spec.value_type, "")
        if code in ARRAY_WRITERS:
            array = f"array_{code}"
            source.namespace[array] = ARRAY_WRITERS[code]
            self._part(f"{array}({values})", FieldLocation(path, f"an array of {spec.value_type}"))
            return
        self._flush()
        item = source.name("item")
        source.line(f"for {item} in {values}:")
        source.indent += 1
        if spec.struct is not None:
            is_repeated = getattr(spec.struct, "IS_REPEATED", False) and self._most_bytes is not None
            (self._repeated_struct if is_repeated else self._struct)(spec.struct, item, path)
        else:
            assert isinstance(spec.value_type, WireType)
            self._value(spec.value_type, item, path, False)
        self._flush()
        if self._is_bounded:
            self._look()
        source.indent -= 1

    # --- sizes

    @property
    def _is_bounded(self) -> bool:
        """Whether what is written now is measured: tagged fields and single objects are, when they are whole."""
        return self._most_bytes is not None and self._parts == "parts"

    def _look(self) -> None:
        """Compare the size of all parts with the bound, where there are many new ones."""
        self._start_with("size = seen = 0")
        self._source.line(f"if len(parts) - seen >= {_LOOK_EVERY}:")
        self._source.line("    size = grown(size, parts, seen); seen = len(parts)")

    def _repeated_struct(self, model: type, item: str, path: Path) -> None:
        """Write an object that may come again: its bytes are kept until the message is written."""
        source = self._source
        known, written = source.name("known"), source.name("written")
        self._start_with(f"{written} = {{}}")
        source.line(f"{known} = {written}.get(id({item}))")
        source.line(f"if {known} is None:")
        source.indent += 1
        outer, self._parts = self._parts, source.name("parts")
        source.line(f"{self._parts} = []")
        self._struct(model, item, path)
        self._flush()
        source.line(f"{known} = {written}[id({item})] = joined({self._parts})")
        self._parts = outer
        source.indent -= 1
        source.line(f"{outer}.append({known})")
        if self._is_bounded:
            # All parts are measured again when they are joined.
            self._start_with("size = seen = 0")
            source.line(f"size += len({known}); seen += 1")
            source.line(f"if size > {self._most_bytes}:")
            source.line(f"    raise ResponseTooLarge({self._most_bytes})")

    def _start_with(self, statement: str) -> None:
        if statement not in self._at_start:
            self._at_start.append(statement)

    # --- tagged fields

    def _tagged_fields(self, tagged: list[FieldSpec], model: type, fields: str, path: Path) -> None:
        source = self._source
        if not tagged:
            self._fixed("x", "", NO_LOCATION)
            return
        self._flush()
        count, sections = source.name("n"), source.name("tagged")
        source.line(f"{count} = 0; {sections} = []")
        for spec in tagged:
            self._tagged_field(spec, _value_of(model, fields, spec), (*path, spec.alias), count, sections)
        source.line(f"{self._parts}.append(small[{count}])")
        source.line(f"if {count}:")
        source.line(f"    {self._parts} += {sections}")

    def _tagged_field(self, spec: FieldSpec, value: str, path: Path, count: str, sections: str) -> None:
        source, outer = self._source, self._parts
        default = source.constant("default", spec.default)
        source.line(f"if {value} is not {default} and {value} != {default}:", FieldLocation(path, "its value"))
        source.indent += 1
        self._parts = source.name("parts")
        source.line(f"{self._parts} = []")
        self._field(spec, value, path)
        self._flush()
        body = source.name("s")
        source.line(f"{body} = b''.join({self._parts})")
        source.line(f"{sections} += (small[{spec.versions.tag}], varint(len({body})), {body})")
        source.line(f"{count} += 1")
        source.indent -= 1
        self._parts = outer

    # --- parts

    def _fixed(self, code: str, value: str, what: FieldLocation) -> None:
        """Add a field of fixed size to the run."""
        self._run.append((code, value))
        self._run_locations.append(what)

    def _part(self, expression: str, what: FieldLocation) -> None:
        self._end_run()
        self._pending.append(expression)
        self._pending_locations.append(what)

    def _end_run(self) -> None:
        if not self._run:
            return
        code = "".join(code for code, _ in self._run)
        values = ", ".join(value for _, value in self._run if value)
        packed = f"{self._source.struct(code, 'pack')}({values})" if values else repr(bytes(len(code)))
        self._pending.append(packed)
        self._pending_locations += self._run_locations
        self._run.clear()
        self._run_locations.clear()

    def _flush(self) -> None:
        """Add pending parts to the list."""
        self._end_run()
        self._is_one_piece = False
        if len(self._pending) == 1:
            self._source.line(f"{self._parts}.append({self._pending[0]})", *self._pending_locations)
        elif self._pending:
            self._source.line(f"{self._parts} += ({', '.join(self._pending)})", *self._pending_locations)
        self._pending.clear()
        self._pending_locations.clear()

    # --- failures

    def _failure(self, problem: Exception) -> SchemaError:
        """The error, with its fields: those that the failing line of source is about."""
        assert problem.__traceback__ is not None
        about = self._source.locations[problem.__traceback__.tb_lineno - 1] or (NO_LOCATION,)
        field = " or ".join(dict.fromkeys(location.text({}) for location in about))
        expected = " or ".join(dict.fromkeys(location.expected for location in about))
        return SchemaError(field, f"cannot be written in v{self._layout.version}: {problem}", expected)


def _grown(size: int, parts: list[Part], seen: int, *, most_bytes: int) -> int:
    """The size of all parts, of which ``size`` is that of the first ``seen``."""
    size += sum(map(len, parts[seen:]))
    if size > most_bytes:
        raise ResponseTooLarge(most_bytes)
    return size


def _joined(parts: list[Part], *, most_bytes: int) -> bytes:
    if sum(map(len, parts)) > most_bytes:
        raise ResponseTooLarge(most_bytes)
    return joined(parts)


@cache
def _has_unbounded(model: type) -> bool:
    """Whether a message has fields of bytes, which may be as long as what they were made of."""
    return any(
        spec.value_type in _UNBOUNDED or (spec.struct is not None and _has_unbounded(spec.struct))
        for spec in fields_of(model)
    )


def _value_of(model: type, fields: str, spec: FieldSpec) -> str:
    """The value of a field: models keep theirs in a dictionary, the data of records has slots."""
    return f"{fields}[{spec.name!r}]" if issubclass(model, BaseModel) else f"{fields}.{spec.name}"
