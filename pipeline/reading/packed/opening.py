"""Opens files as text has them: unpacked where their content is packed, also within archives.

A packed file yields at most :func:`most_unpacked` bytes, so that a small file cannot cost much time or memory.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable
from typing import IO, Any, Final, NamedTuple

UNREADABLE: Final = (OSError, EOFError, zlib.error)
"""Exceptions where a file cannot be read further."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_LONGEST_MAGIC: Final = 6
_TAR: Final = slice(257, 262)
_HEAD_BYTES: Final = 512
_BUFFER_BYTES: Final = 1 << 17
_FREE_BYTES: Final = 1 << 26
_TIMES: Final = 200
ENDINGS: Final = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
"""Suffixes that packing adds to the name of a file."""
ENDING: Final = r"(?:\.(?:gz|bz2|xz))?"
"""These suffixes as a regular expression."""


def packing_of(head: bytes) -> str | None:
    """The packing of a single file with this beginning: ``gzip``, ``bzip2`` or ``xz``; None for a file that is not."""
    return next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)


def is_zip(head: bytes) -> bool:
    """Whether a file that begins like this is a zip."""
    return head.startswith(_ZIP)


def is_tar(head: bytes) -> bool:
    """Whether a file that begins like this, unpacked, is a tar."""
    return head[_TAR] == b"ustar"


def is_archive(path: str) -> bool:
    """Whether a file is a zip or a tar, packed or not."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            packing = packing_of(head)
            if packing is None:
                return is_zip(head) or is_tar(head)
            file.seek(0)
            return is_tar(unpacked(file, packing, os.path.getsize(path)).read(_HEAD_BYTES))
    except UNREADABLE:
        return False


def opened(path: str) -> IO[bytes]:
    """The unpacked content of a file, or of a member of an archive, whose path goes on behind the archive's."""
    try:
        file: IO[bytes] = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        size = os.fstat(file.fileno()).st_size
    except NotADirectoryError:
        from rejoin.pipeline.reading.packed.archives import member_of  # noqa: PLC0415 (few files are archives)

        member = member_of(path)
        file, size = member.open(), member.size
    packing = packing_of(file.peek(_LONGEST_MAGIC)) if isinstance(file, io.BufferedReader) else None
    return file if packing is None else unpacked(file, packing, size)


def size_of(path: str) -> int:
    """Bytes of a file, or of a member of an archive; of a packed one those that are stored."""
    try:
        return os.path.getsize(path)
    except NotADirectoryError:
        from rejoin.pipeline.reading.packed.archives import member_of  # noqa: PLC0415

        return member_of(path).size


def most_unpacked(packed_bytes: int) -> int:
    """To how many bytes a file may unpack. Logs shrink to a tenth or a fiftieth."""
    return _FREE_BYTES + _TIMES * packed_bytes


def unpacked(file: IO[bytes], packing: str, size: int) -> io.BufferedReader:
    """The content of a packed file of so many bytes."""
    reader = _READERS[packing]()
    return io.BufferedReader(_Bounded(reader.opened(file), most_unpacked(size), reader.errors, file), _BUFFER_BYTES)


def bounded(file: IO[bytes], most: int, errors: tuple[type[Exception], ...] = ()) -> io.BufferedReader:
    """A file that fails after so many bytes; ``errors`` of its own become OSError."""
    return io.BufferedReader(_Bounded(file, most, errors), _BUFFER_BYTES)


class _Reader(NamedTuple):
    """The reader of a packed file, and its exceptions beside :data:`UNREADABLE`."""

    opened: Callable[[IO[bytes]], Any]
    errors: tuple[type[Exception], ...] = ()


def _of_gzip() -> _Reader:
    import gzip  # noqa: PLC0415 (as those below, only for packed files)

    return _Reader(lambda file: gzip.GzipFile(fileobj=file, mode="rb"))


def _of_bzip2() -> _Reader:
    import bz2  # noqa: PLC0415

    return _Reader(bz2.BZ2File, (ValueError,))


def _of_xz() -> _Reader:
    import lzma  # noqa: PLC0415

    return _Reader(lzma.LZMAFile, (lzma.LZMAError,))


_READERS: Final[dict[str, Callable[[], _Reader]]] = {"gzip": _of_gzip, "bzip2": _of_bzip2, "xz": _of_xz}


class _Bounded(io.RawIOBase):
    """Reads no more at once than there is, so that what comes before a fault is read."""

    def __init__(
        self, file: Any, most: int, errors: tuple[type[Exception], ...], below: IO[bytes] | None = None
    ) -> None:
        """``below``: a file that is closed with it."""
        self._file, self._most, self._errors, self._below = file, most, errors, below

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            found: bytes = self._file.read1(len(buffer))
        except self._errors as problem:
            raise OSError(str(problem) or type(problem).__name__) from None
        beyond = self.tell() - self._most
        if found and beyond >= len(found):
            raise OSError(f"it unpacks to more than {self._most >> 20} MB, the most for its size; unpack it first")
        found = found[: len(found) - max(0, beyond)]
        buffer[: len(found)] = found
        return len(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            if self._below is not None:
                self._below.close()
        super().close()
