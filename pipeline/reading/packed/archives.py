"""Archives of logs, zip and tar: their members are read in place, by the path of the archive and the member's name.

Nothing is written under a name from an archive: a packed tar is unpacked into one nameless temporary file.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, Any, Final

from rejoin.pipeline.reading.packed.opening import (
    UNREADABLE,
    bounded,
    is_zip,
    most_unpacked,
    packing_of,
    unpacked,
)

MOST_BYTES: Final = 1 << 30
"""Bytes of all members of an archive together, unpacked."""
MOST_MEMBERS: Final = 10_000
_MOST_HEADER: Final = 1 << 20
_HEAD_BYTES: Final = 512
_ENCRYPTED: Final = 1
_KEPT_OPEN: Final = 8
_TAR_ERRORS: Final = (tarfile.TarError, *UNREADABLE, ValueError, OverflowError)
_ZIP_ERRORS: Final = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive. ``problem``: why it cannot be read."""

    name: str
    size: int
    open_it: Callable[[], IO[bytes]]
    problem: str | None = None

    def open(self) -> io.BufferedReader:
        """The member as it is stored in the archive."""
        if self.problem is not None:
            raise OSError(self.problem)
        return bounded(self.open_it(), MOST_BYTES, _ZIP_ERRORS)


@dataclass(slots=True)
class Archive:
    """The members by name; of several of one name the last. ``problem``: why there are no more."""

    members: dict[str, ArchiveMember] = field(default_factory=dict)
    problem: str | None = None
    _bytes: int = 0

    def add(self, stored: str, size: int, open_it: Callable[[], IO[bytes]], most: int, problem: str | None) -> bool:
        """Add a member; whether there is room for more."""
        name = stored.replace("\\", "/").encode(errors="surrogateescape").decode(errors="backslashreplace")
        parts = [part for part in PurePosixPath(name).parts if part != "/"]
        if len(self.members) >= MOST_MEMBERS:
            self.problem = f"it has more than {MOST_MEMBERS:,} files, and those from {name} on are left out"
            return False
        if ".." in parts:
            problem = "its name leads out of the archive"
        elif problem is None and self._bytes + size > most:
            problem = (
                f"with it the archive unpacks to more than {most >> 20} MB, the most for its size; unpack it first"
            )
        else:
            self._bytes += size
        self.members["/".join(parts)] = ArchiveMember(name, size, open_it, problem)
        return True


def archive_at(path: str) -> Archive:
    """The archive that a file is. Raises OSError where the file cannot be read at all."""
    found = os.stat(path)
    return _archive(path, found.st_mtime_ns, found.st_size)


def member_of(path: str) -> ArchiveMember:
    """The member at a path that goes on behind that of an archive. Raises OSError where there is none."""
    archive = path
    while not os.path.lexists(archive):
        archive, _, rest = archive.rpartition("/")
        if not rest:
            break
    name = path[len(archive) + 1 :]
    try:
        return archive_at(archive).members[name]
    except KeyError:
        raise NotADirectoryError(f"{path}: no such file in the archive") from None


@lru_cache(maxsize=_KEPT_OPEN)
def _archive(path: str, written_ns: int, size: int) -> Archive:
    """An archive stays open: its members are read several times."""
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    most = min(MOST_BYTES, most_unpacked(size))
    return _zip(path, most) if is_zip(head) else _tar(path, head, size, most)


# --- zip


def _zip(path: str, most: int) -> Archive:
    archive = Archive()
    try:
        packed = zipfile.ZipFile(path)
    except (*_ZIP_ERRORS, *UNREADABLE) as problem:
        archive.problem = f"a zip that is broken: {problem}"
        return archive
    for info in packed.infolist():
        if info.is_dir():
            continue
        closed = "it is encrypted; unpack it with its password" if info.flag_bits & _ENCRYPTED else None
        open_it = _opener(packed, info)
        if not archive.add(info.filename, info.file_size, open_it, most, closed):
            break
    return archive


def _opener(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    def open_it() -> IO[bytes]:
        try:
            return packed.open(info)
        except _ZIP_ERRORS as problem:
            raise OSError(str(problem)) from None

    return open_it


# --- tar


class _Info(tarfile.TarInfo):
    """A header. Those that go before a member's own, with its long name, are read into memory."""

    def _proc_pax(self, tar: Any) -> Any:
        return self._short_enough(tar)._proc_pax(tar)

    def _proc_gnulong(self, tar: Any) -> Any:
        return self._short_enough(tar)._proc_gnulong(tar)

    def _short_enough(self, tar: Any) -> Any:
        if self.size > _MOST_HEADER:
            raise tarfile.ReadError("a header is too long")
        return super()


def _tar(path: str, head: bytes, size: int, most: int) -> Archive:
    archive = Archive()
    with _plain(path, packing_of(head), size, most, archive) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        kept = _Descriptor(os.dup(file.fileno()))
        name = "its beginning"
        try:
            with tarfile.open(fileobj=file, mode="r:", tarinfo=_Info) as tar:
                for info in tar:
                    if info.isreg() and not archive.add(info.name, info.size, _part(kept, info), most, None):
                        break
                    name = info.name
                    if info.offset_data + info.size > end:
                        raise tarfile.ReadError("its end is missing")
        except _TAR_ERRORS as problem:
            archive.problem = archive.problem or f"a tar that is broken behind {name}: {problem}"
    return archive


@contextmanager
def _plain(path: str, packing: str | None, size: int, most: int, archive: Archive) -> Iterator[IO[bytes]]:
    """The tar without its packing, as far as it can be unpacked; ``archive`` gets the reason for the rest."""
    with open(path, "rb") as file:
        if packing is None:
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            whole = bounded(unpacked(file, packing, size), most)
            try:
                while chunk := whole.read1():
                    copy.write(chunk)
            except UNREADABLE as problem:
                archive.problem = f"a tar that cannot be unpacked to its end: {problem}"
            yield copy


class _Descriptor:
    """A file that stays open, without a name, as long as a member may be read from it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _part(file: _Descriptor, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    return lambda: io.BufferedReader(_Part(file, info.offset_data, info.size))


class _Part(io.RawIOBase):
    """A part of a file, with a place of its own in it."""

    def __init__(self, file: _Descriptor, start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = os.pread(self._file.number, min(len(buffer), self._size - self._at), self._start + self._at)
        if not found and self._at < self._size:
            raise EOFError("the archive ends within it")
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at
