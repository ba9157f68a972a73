"""A message that carries records, read while it passes: its other fields are kept, its records are not.

A Fetch of 100 MB passes in pieces of a socket's size. What is kept is the same message with empty records, which the
codec of ``protocol`` reads, and a few hundred bytes for each partition.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.protocol.fields import FieldSpec
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.codec import Codec, is_flexible
from rejoin.protocol.wire.primitives import FORMATS, MAX_TAGGED_FIELDS, Malformed, read_long_varint, write_varint
from rejoin.protocol.wire.source import Layout

MOST_KEPT_BYTES: Final = 4 << 20
"""How much of one message without its records is kept; one that has more is no longer read, and passes."""

_LONGEST_VARINT: Final = 5
_Steps: TypeAlias = Generator[None, bytes, None]


class _Op(NamedTuple):
    """A step through a message. ``size`` is that of fixed fields, ``inner`` are the steps of an array's items."""

    kind: str
    size: int = 0
    inner: tuple[_Op, ...] = ()
    is_compact: bool = False
    least: int = 1
    name: str = ""


@cache
def _ops(model: type, layout: Layout) -> tuple[_Op, ...]:
    """The steps of a struct; fields of fixed size that follow each other are one."""
    found: list[_Op] = []
    for spec in layout.plain(model):
        for op in _field_ops(spec, layout):
            if op.kind == "fixed" and found and found[-1].kind == "fixed":
                found[-1] = _Op("fixed", found[-1].size + op.size)
            else:
                found.append(op)
    if layout.is_flexible:
        found.append(_Op("tags"))
    return tuple(found)


def _field_ops(spec: FieldSpec, layout: Layout) -> tuple[_Op, ...]:
    compact = layout.is_flexible
    if spec.is_array:
        least = layout.least_size(spec.value_type)
        inner = _ops(spec.struct, layout) if spec.struct is not None else _value_ops(spec.value_type, compact)
        return (_Op("array", inner=inner, is_compact=compact, least=least, name=spec.name),)
    if spec.struct is not None:
        assert not layout.may_be_null(spec), "no message with records has such a field"
        return _ops(spec.struct, layout)
    return _value_ops(spec.value_type, compact)


def _value_ops(value_type: Any, compact: bool) -> tuple[_Op, ...]:
    if value_type in FORMATS:
        return (_Op("fixed", struct.calcsize(">" + FORMATS[value_type])),)
    if value_type is WireType.RECORDS:
        return (_Op("records", is_compact=compact),)
    return (_Op("text", size=2 if value_type is WireType.STRING else 4, is_compact=compact),)


class RecordsApart:
    """Reads the body of one message in pieces. Raises nothing: ``problem`` says why it could not be read.

    ``held_after`` names an array behind which bytes are the message's tail: they are not to be passed on before they
    were looked at.
    """

    __slots__ = (
        "_at",
        "_behind_tail",
        "_data",
        "_held_after",
        "_kept",
        "_kept_bytes",
        "_left",
        "_mark",
        "_most_records",
        "_records_left",
        "_steps",
        "is_complete",
        "problem",
        "record_bytes",
        "tail_begins",
    )

    def __init__(
        self,
        model: type,
        codec: Codec,
        size: int,
        *,
        held_after: str = "",
        most_records: int = 0,
        has_header_tags: bool = False,
    ) -> None:
        """``size`` is that of the body in bytes; of each partition's records ``most_records`` bytes are kept.

        With ``has_header_tags`` the tagged fields of the header are in front of the body, and counted in ``size``.
        """
        self._data = b""
        self._at = self._mark = 0
        self._left = size
        """Bytes of the body that are not yet here."""
        self._records_left = 0
        """How many bytes of a partition's records are still to come."""
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._held_after = held_after
        self._most_records = most_records
        self.record_bytes = 0
        self.is_complete = False
        self.problem = ""
        self.tail_begins = False
        self._behind_tail = 0
        layout = Layout(codec.version, is_flexible(codec.api, codec.version))
        first = (_Op("tags"),) if has_header_tags else ()
        self._steps: _Steps = self._walk((*first, *_ops(model, layout)))
        next(self._steps)

    def feed(self, piece: bytes, at: int = 0) -> int:
        """Read a piece, the first one from ``at`` on; returns where in it the tail begins."""
        if self.problem or self.is_complete:
            return 0 if self.tail_begins else len(piece)
        size = len(piece) - at
        self._left -= size
        if self._records_left > size:
            self._records_left -= size
            return len(piece)
        had_begun = self.tail_begins
        if at:
            self._at = self._mark = at
        try:
            self._steps.send(piece)
        except StopIteration:
            self.is_complete = True
        except Malformed as problem:
            self.problem = str(problem)
        if not self.tail_begins:
            return len(piece)
        return 0 if had_begun else len(piece) - self._behind_tail

    @property
    def kept(self) -> bytes:
        """The body with empty records."""
        return b"".join(self._kept)

    # --- steps

    def _walk(self, ops: tuple[_Op, ...]) -> _Steps:
        self._data = yield
        for op in ops:
            if not self._is_past(op):
                yield from self._step(op)
            if op.name and op.name == self._held_after:
                self.tail_begins = True
                self._behind_tail = len(self._data) - self._at
        if self._left or self._at != len(self._data):
            raise Malformed(f"{self._left + len(self._data) - self._at:,} bytes behind the message")
        self._keep()

    def _is_past(self, op: _Op) -> bool:
        """Go past a field of fixed size, or past no tagged fields, if it is here: most are, and need no generator."""
        at, here = self._at, len(self._data)
        if op.kind == "fixed":
            at += op.size
        elif op.kind == "tags" and at < here and self._data[at] == 0:
            at += 1
        else:
            return False
        if at > here:
            return False
        self._at = at
        return True

    def _step(self, op: _Op) -> _Steps:
        kind = op.kind
        if kind == "fixed":
            yield from self._skip(op.size)
        elif kind == "text":
            size = yield from self._length(op)
            yield from self._skip(max(size, 0))
        elif kind == "array":
            count = yield from self._length(op)
            if count > 0 and count * op.least > self._left + len(self._data) - self._at:
                raise Malformed(f"{count:,} entries, but {self._left + len(self._data) - self._at:,} bytes left")
            for _ in range(count):
                for inner in op.inner:
                    if not self._is_past(inner):
                        yield from self._step(inner)
        elif kind == "records":
            yield from self._records(op)
        else:
            yield from self._tags()

    def _records(self, op: _Op) -> _Steps:
        before = self._at
        if self._mark < before:
            self._keep()
        size = yield from self._length(op)
        if size > self._left + len(self._data) - self._at:
            raise Malformed(f"records of {size:,} bytes, but {self._left + len(self._data) - self._at:,} left")
        self._mark = self._at
        size = max(size, 0)
        self.record_bytes += size
        first = min(size, self._most_records)
        self._add(write_varint(first + 1) if op.is_compact else struct.pack(">i", first))
        if first:
            yield from self._need(first)
            self._add(self._data[self._at : self._at + first])
            self._at += first
        left = size - first - (len(self._data) - self._at)
        if left > 0:
            # Pieces that are nothing but records do not come here.
            self._records_left, self._data = left, b""
            self._data = yield
            self._at = self._records_left
            self._records_left = 0
        else:
            self._at += size - first
        self._mark = self._at

    def _tags(self) -> _Steps:
        count = yield from self._varint()
        if count > MAX_TAGGED_FIELDS:
            raise Malformed(f"more than {MAX_TAGGED_FIELDS} tagged fields")
        for _ in range(count):
            yield from self._varint()
            size = yield from self._varint()
            yield from self._skip(size)

    def _length(self, op: _Op) -> Generator[None, bytes, int]:
        """A length; -1 where there is nothing."""
        if op.is_compact:
            if self._at < len(self._data) and (first := self._data[self._at]) < 128:
                self._at += 1
                return first - 1
            return (yield from self._varint()) - 1
        width = op.size if op.kind == "text" else 4
        if len(self._data) - self._at < width:
            yield from self._need(width)
        at = self._at
        self._at = at + width
        return int.from_bytes(self._data[at : at + width], "big", signed=True)

    def _varint(self) -> Generator[None, bytes, int]:
        if self._at >= len(self._data):
            yield from self._need(1)
        first = self._data[self._at]
        if first < 128:
            self._at += 1
            return first
        wanted = 2
        while wanted < _LONGEST_VARINT:
            yield from self._need(wanted)
            if self._data[self._at + wanted - 1] < 128:
                break
            wanted += 1
        yield from self._need(wanted)
        value, self._at = read_long_varint(self._data[: self._at + wanted], self._at + 1, first)
        return value

    def _skip(self, size: int) -> _Steps:
        if len(self._data) - self._at < size:
            yield from self._need(size)
        self._at += size

    def _need(self, size: int) -> _Steps:
        """Wait until so many bytes are here."""
        missing = size - (len(self._data) - self._at)
        if missing <= 0:
            return
        if missing > self._left:
            raise Malformed(f"a field of {size:,} bytes, but {size - missing + self._left:,} left")
        if size > MOST_KEPT_BYTES:
            raise Malformed(f"a field of {size:,} bytes")
        self._keep()
        pieces = [self._data[self._at :]]
        while missing > 0:
            piece = yield
            pieces.append(piece)
            missing -= len(piece)
        self._data = b"".join(pieces)
        self._at = self._mark = 0

    def _keep(self) -> None:
        self._add(self._data[self._mark : self._at])
        self._mark = self._at

    def _add(self, part: bytes) -> None:
        self._kept_bytes += len(part)
        if self._kept_bytes > MOST_KEPT_BYTES:
            raise Malformed(f"more than {MOST_KEPT_BYTES:,} bytes beside the records")
        self._kept.append(part)
