"""Servers that do a part of what a broker does with batches, for comparison.

One copies and computes the CRC; one keeps the bytes as well; one does the least that a broker in Python can do with a
Produce. That one knows the request but for its batch. It looks at every record, keeps the batch as the log of the
service does, and answers. It has no topics, no versions, no errors and no readers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final

import google_crc32c

from rejoin.coordinator.core.partitions.arena import Arena
from rejoin.posix import calm_collector
from rejoin.protocol.wire.record_batch import ATTRIBUTES_AT, HEADER_SIZE, MAGIC_AT, checksum, parse_header
from rejoin.protocol.wire.record_scan import scan_records

_MOST_KEPT: Final = 2**28
_CORRELATION_AT: Final = 8
"""Where a frame has its correlation id."""
_CLIENT_AT: Final = 12
"""Where the client id and all that is constant begin."""
_TAGS: Final = 3
"""The bytes behind the only batch of a request."""


class _CopyServer(asyncio.Protocol):
    """Takes frames, copies what a batch has, computes its CRC; or sends as many bytes as the frame asks for."""

    kept = b""

    def __init__(self, log: list[bytes] | None = None) -> None:
        self._buffer = bytearray()
        self._log = log

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 4:
            end = 4 + int.from_bytes(buffer[:4], "big")
            if len(buffer) < end:
                return
            if end > 100:
                _CopyServer.kept = bytes(buffer[4:end])
                google_crc32c.value(_CopyServer.kept)
                if self._log is not None:
                    self._keep(self._log)
                self._transport.write(b"\0\0\0\4good")
            else:
                self._transport.write(struct.pack(">i", len(_CopyServer.kept)))
                self._transport.write(bytes(_CopyServer.kept))
            del buffer[:end]

    def _keep(self, log: list[bytes]) -> None:
        if log and (len(log[0]) != len(_CopyServer.kept) or len(log) * len(log[0]) > _MOST_KEPT):
            log.clear()
        log.append(_CopyServer.kept)


async def start_copying(listener: socket.socket) -> Any:
    """The server that knows no Kafka."""
    calm_collector()
    return await asyncio.get_running_loop().create_server(_CopyServer, sock=listener)


async def start_keeping(listener: socket.socket) -> Any:
    """The same, with a log."""
    calm_collector()
    log: list[bytes] = []
    return await asyncio.get_running_loop().create_server(lambda: _CopyServer(log), sock=listener)


class _CheckServer(asyncio.Protocol):
    """Takes Produce requests that differ from those it knows in their batches alone; each connection is a log."""

    def __init__(self, known: dict[int, tuple[bytes, int]]) -> None:
        self._known = known
        self._pieces: list[bytes] = []
        self._missing = 0
        self._arena = Arena()
        self._log: list[bytes | memoryview] = []
        self._log_size = 0
        self._end_offset = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if not self._pieces:
            self._missing = 4 + int.from_bytes(data[:4], "big")
        self._missing -= len(data)
        self._pieces.append(data)
        if not self._missing:
            self._take(b"".join(self._pieces) if len(self._pieces) > 1 else data)
            self._pieces.clear()

    def _take(self, frame: bytes) -> None:
        constant, at = self._known[len(frame)]
        end = len(frame) - _TAGS
        assert frame.startswith(constant, _CLIENT_AT), "only the batch is another one"
        view, header = memoryview(frame), parse_header(frame, at)
        assert header.size == end - at, "it is one batch"
        assert checksum(view[at + ATTRIBUTES_AT : end]) == header.crc, "it is intact"
        scan = scan_records(frame, at + HEADER_SIZE, header.records_count, end)
        assert scan.has_offsets_in_order, "the records are those of a producer"
        start = header.with_position(self._end_offset, 0).pack_start()
        self._log.append(self._arena.copy_in(start, view[at + MAGIC_AT : end], self._log_size))
        self._log_size += header.size
        self._end_offset += header.records_count
        self._transport.write(b"\0\0\0\x0c" + frame[_CORRELATION_AT:_CLIENT_AT] + self._end_offset.to_bytes(8, "big"))


async def start_checking(listener: socket.socket, requests: dict[bytes, bytes]) -> Any:
    """The least of a broker. ``requests`` are those that will come, each with its batch."""
    calm_collector()
    known = {len(frame): (frame[_CLIENT_AT : (at := frame.index(batch))], at) for frame, batch in requests.items()}
    return await asyncio.get_running_loop().create_server(lambda: _CheckServer(known), sock=listener)
