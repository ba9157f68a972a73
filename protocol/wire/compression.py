"""The codecs of record batches: gzip, snappy, lz4 and zstd. Unpacked data never exceeds a bound.

``cramjam`` has all but gzip, and is imported when a batch first needs it. Kafka: CompressionType.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import ModuleType
from typing import Any, Final, TypeAlias

from rejoin.protocol.wire.errors import CompressionError

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_UNPACKED_BYTES: Final = 64 << 20
"""Records that unpack to more are refused: a batch of a megabyte can hold gigabytes of zeros."""

_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_FIRST_GUESS: Final = 16
"""Most records unpack to less than so many times their size, so this much is reserved at first."""

# Kafka: snappy-java's SnappyOutputStream. Magic, version and lowest compatible version, then blocks with their lengths.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 32 << 10

# Kafka: Lz4BlockOutputStream. Its reader refuses blocks that depend on each other. Version, blocks of 64 KiB, checksum.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 << 10
_LZ4_PLAIN: Final = 1 << 31
_LZ4_END: Final = bytes(4)


class CompressionType(IntEnum):
    """The codec of a batch, by its number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, data: Buffer, limit: int = MAX_UNPACKED_BYTES) -> Buffer:
    """The records that a batch packed with one of the codecs. Raises :class:`CompressionError`."""
    unpack = _UNPACK.get(codec)
    if unpack is None:
        raise CompressionError(f"codec {codec}: expected 0 to 4 (none, gzip, snappy, lz4, zstd)")
    try:
        return unpack(data, limit)
    except CompressionError:
        raise
    except Exception as problem:  # each codec has errors of its own
        raise CompressionError(f"damaged {CompressionType(codec).name.lower()} data: {problem}") from None


def compress(codec: int, data: Buffer) -> Buffer:
    """Records packed as Kafka's broker packs them: snappy in xerial's framing, lz4 in frames."""
    match codec:
        case CompressionType.NONE:
            return data
        case CompressionType.GZIP:
            packer = zlib.compressobj(wbits=_GZIP_WBITS)
            return packer.compress(data) + packer.flush()
        case CompressionType.SNAPPY:
            return _XERIAL_HEADER + b"".join(_xerial_blocks(data))
        case CompressionType.LZ4:
            return _LZ4_HEADER + b"".join(_lz4_blocks(data)) + _LZ4_END
        case _:
            return bytes(_cramjam().zstd.compress(data))


def _cramjam() -> ModuleType:
    import cramjam  # noqa: PLC0415 - most batches are never looked into

    return cramjam


def _too_large(limit: int) -> CompressionError:
    return CompressionError(f"records unpack to more than {limit} bytes")


def _plain(data: Buffer, limit: int) -> Buffer:
    return data


def _gunzip(data: Buffer, limit: int) -> Buffer:
    unpacked = bytearray()
    while data:
        unpacker = zlib.decompressobj(_GZIP_WBITS)
        unpacked += unpacker.decompress(data, limit + 1 - len(unpacked))
        if len(unpacked) > limit:
            raise _too_large(limit)
        if not unpacker.eof:
            raise CompressionError("damaged gzip data: it ends too early")
        data = unpacker.unused_data  # several members in a row are one stream
    return unpacked


def _unsnap(data: Buffer, limit: int) -> Buffer:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnap_block(data, limit)
    unpacked = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise CompressionError("damaged snappy data: a block ends too early")
        unpacked += _unsnap_block(data[position : position + size], limit, len(unpacked))
        position += size
    return unpacked


def _unsnap_block(data: Buffer, limit: int, already: int = 0) -> Buffer:
    snappy = _cramjam().snappy
    size = snappy.decompress_raw_len(data)
    # A snappy element of three bytes copies at most 64: a length beyond that is a lie.
    if already + size > limit or size > 64 * len(data):
        raise _too_large(limit)
    unpacked = bytearray(size)
    if snappy.decompress_raw_into(data, unpacked) != size:
        raise CompressionError("damaged snappy data: it ends too early")
    return unpacked


def _xerial_blocks(data: Buffer) -> Iterator[bytes]:
    snappy = _cramjam().snappy
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        yield len(block).to_bytes(4, "big")
        yield block


def _lz4_blocks(data: Buffer) -> Iterator[bytes]:
    lz4 = _cramjam().lz4
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK):
        plain = view[start : start + _LZ4_BLOCK]
        block = bytes(lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            yield len(block).to_bytes(4, "little")
            yield block
        else:
            yield (len(plain) | _LZ4_PLAIN).to_bytes(4, "little")
            yield bytes(plain)


def _unpack_frames(name: str) -> Callable[[Buffer, int], Buffer]:
    """A function that unpacks lz4 or zstd frames, first into a buffer of a likely size, then into the largest."""

    def unpack(data: Buffer, limit: int) -> Buffer:
        module: Any = getattr(_cramjam(), name)
        for size in (min(limit, max(_FIRST_GUESS * len(data), 1 << 12)), limit):
            unpacked = bytearray(size)
            try:
                used = module.decompress_into(data, unpacked)
            except _cramjam().DecompressionError as problem:
                if "whole buffer" not in str(problem):
                    raise
                continue
            del unpacked[used:]
            return unpacked
        raise _too_large(limit)

    return unpack


_UNPACK: Final[dict[int, Callable[[Buffer, int], Buffer]]] = {
    CompressionType.NONE: _plain,
    CompressionType.GZIP: _gunzip,
    CompressionType.SNAPPY: _unsnap,
    CompressionType.LZ4: _unpack_frames("lz4"),
    CompressionType.ZSTD: _unpack_frames("zstd"),
}
