"""The brokers of a Metadata answer, replaced by our listeners as soon as they are here.

They are in front of the topics, so that the rest of an answer of any size passes as it comes, unread.
"""

from __future__ import annotations

import struct
from typing import Final

from rejoin.protocol.wire.codec import Codec
from rejoin.protocol.wire.errors import SchemaError
from rejoin.protocol.wire.primitives import Malformed, read_long_varint, write_varint
from rejoin.proxy.broker_table import MOST_BROKERS, TooManyBrokers
from rejoin.proxy.frames import LENGTH_BYTES
from rejoin.proxy.rewriting import LocalAddresses

LONGEST_HEAD: Final = 1 << 20
"""Bytes of an answer in which all its brokers must be."""
_CORRELATION_BYTES: Final = 4
_FIRST_WITH_THROTTLE: Final = 3
_FIRST_WITH_RACKS: Final = 1
_MOST_TAGS: Final = 100


class _TooShort(Exception):
    """The bytes end before the brokers do."""


class _Reader:
    """Reads what a Metadata answer begins with; what it passes is kept as it is."""

    def __init__(self, data: bytes, at: int, *, is_compact: bool) -> None:
        self.data, self.at, self._is_compact = data, at, is_compact

    def skip(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise _TooShort
        return self.data[self.at - size : self.at]

    def number(self, form: str = ">i") -> int:
        found: int = struct.unpack(form, self.skip(struct.calcsize(form)))[0]
        return found

    def varint(self) -> int:
        first = self.skip(1)[0]
        if first < 0x80:
            return first
        try:
            found, self.at = read_long_varint(self.data, self.at, first)
        except IndexError:
            raise _TooShort from None
        except Malformed as problem:
            if len(self.data) - self.at < 5:
                raise _TooShort from None
            raise SchemaError("brokers", str(problem), "a length") from None
        return found

    def count(self) -> int:
        return self.varint() - 1 if self._is_compact else self.number()

    def text(self) -> bytes:
        size = self.varint() - 1 if self._is_compact else self.number(">h")
        return self.skip(max(size, 0))

    def tags(self) -> None:
        if not self._is_compact:
            return
        count = self.varint()
        if count > _MOST_TAGS:
            raise SchemaError("brokers", f"{count:,} tagged fields", f"at most {_MOST_TAGS}")
        for _ in range(count):
            self.varint()
            self.skip(self.varint())


def with_our_brokers(beginning: bytes, codec: Codec, addresses: LocalAddresses) -> bytes | None:
    """The beginning of an answer with our brokers, its length changed with it; none where it is too short for that.

    Raises SchemaError where it lies, and WrongBrokers where there can be no listeners for what it names.
    """
    size = int.from_bytes(beginning[:LENGTH_BYTES], "big")
    try:
        at, end, brokers = _replaced(beginning, codec, addresses)
    except _TooShort:
        if len(beginning) >= min(LONGEST_HEAD, LENGTH_BYTES + size):
            raise SchemaError("brokers", f"more than {len(beginning):,} bytes", "an array that ends") from None
        return None
    if end > LENGTH_BYTES + size:
        raise SchemaError("brokers", "an array that ends behind its message", "one within it")
    return b"".join(
        (
            (size + len(brokers) - (end - at)).to_bytes(LENGTH_BYTES, "big"),
            beginning[LENGTH_BYTES:at],
            brokers,
            beginning[end:],
        )
    )


def _replaced(beginning: bytes, codec: Codec, addresses: LocalAddresses) -> tuple[int, int, bytes]:
    """Where the array of brokers begins and ends, and the array that takes its place."""
    is_compact = codec.is_flexible
    reader = _Reader(beginning, LENGTH_BYTES + _CORRELATION_BYTES, is_compact=is_compact)
    reader.tags()
    if codec.version >= _FIRST_WITH_THROTTLE:
        reader.number()
    at = reader.at
    count = max(reader.count(), 0)
    if count > MOST_BROKERS:
        raise TooManyBrokers(f"the cluster names {count:,} brokers; expected at most {MOST_BROKERS:,}")
    found = [_broker(reader, codec) for _ in range(count)]
    parts = [_count(count, is_compact) if count else beginning[at : reader.at]]
    for node_id, host, port, rest in found:
        if node_id >= 0:
            local_host, local_port = addresses.local(node_id, host.decode(errors="replace"), port)
            ours = local_host.encode(), local_port
        else:
            ours = host, port
        length = write_varint(len(ours[0]) + 1) if is_compact else struct.pack(">h", len(ours[0]))
        parts += [struct.pack(">i", node_id), length, ours[0], struct.pack(">i", ours[1]), rest]
    return at, reader.at, b"".join(parts)


def _count(count: int, is_compact: bool) -> bytes:
    return write_varint(count + 1) if is_compact else struct.pack(">i", count)


def _broker(reader: _Reader, codec: Codec) -> tuple[int, bytes, int, bytes]:
    node_id, host, port = reader.number(), reader.text(), reader.number()
    at = reader.at
    if codec.version >= _FIRST_WITH_RACKS:
        reader.text()
    reader.tags()
    return node_id, host, port, reader.data[at : reader.at]
