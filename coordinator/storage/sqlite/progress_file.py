"""The files of a data directory beside SQLite's own: the lock, and the progress file, ``mark``.

A transaction that SQLite has made durable is in its write-ahead log, in a file beside the database. SQLite starts
silently when that file is missing, or from where it is broken: what was in there is gone. The progress file notices
that. It has the number of the newest batch, written after each commit and before anyone is answered. It is not synced:
a process that is killed loses nothing of what it has written, and after a machine that failed it is behind the database
at worst, never ahead of it.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.journal.file_lock import FileLock, FileLocked

DATABASE: Final = "coordinator.db"
LOCK: Final = "lock"
PROGRESS: Final = "mark"
_LOOKS: Final = 5


class DirectoryInUse(StoreProblem):
    """Another process has the directory. ``by`` says which one, without what to do about it."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.by = f"{folder} is in use by another process" + (f", {owner}" if owner else "")
        super().__init__(
            f"{self.by}: expected a directory for each coordinator; stop the other one, or use another directory"
        )


class ProgressUnreadable(StoreProblem):
    """There is a progress file that cannot be read. ``what`` is wrong, without what to do about it."""

    def __init__(self, what: str, folder: Path) -> None:
        self.what = what
        super().__init__(what + advice(folder))


def advice(folder: Path) -> str:
    """Advice for a directory that has lost data."""
    return (
        ". Put a complete copy of the directory back; or save what can still be read of groups, offsets and topics, "
        f"though not the topics' records, with rejoin log export --data {folder} --salvage, and import it into an "
        "empty directory"
    )


def lock_directory(folder: Path) -> FileLock:
    """Have a directory to oneself.

    Raises :class:`DirectoryInUse` when another process has it, or :class:`StoreProblem` when it cannot be had.
    """
    try:
        return FileLock(folder / LOCK)
    except FileLocked as problem:
        raise DirectoryInUse(folder, problem.holder) from None
    except OSError as problem:
        raise StoreProblem(
            f"the data directory {folder} cannot be used: {LOCK}: {problem.strerror}; expected a directory to "
            f"write to, and a file {LOCK} in it or none"
        ) from problem


class Progress(NamedTuple):
    """Content of the progress file: the store's id, and how many batches it has had."""

    store: str
    batch: int


class ProgressFile:
    """The newest batch of a store, as a file that is written in place."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS
        self._handle = -1
        self._store = ""

    def read(self) -> Progress | None:
        """The file's content; none without a file. Raises :class:`ProgressUnreadable` if it is not a progress file."""
        database = self._path.with_name(DATABASE)
        # A reader may see half of the old text and half of the new while it is written.
        for _ in range(_LOOKS):
            try:
                words = self._path.read_text(errors="replace").split()
            except FileNotFoundError:
                return None
            except OSError as problem:
                what = f"{self._path} cannot be read ({problem.strerror}; expected a file)"
                break
            if len(words) == 3 and words[1].isdecimal() and words[2] == _crc(words[0], int(words[1])):
                return Progress(words[0], int(words[1]))
            what = f"{self._path} is damaged"
        raise ProgressUnreadable(f"{what}, so {database} may be incomplete", self._path.parent)

    def open(self, store: str, batch: int) -> None:
        """Begin to write it."""
        self._store = store
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.write(batch)
        os.fsync(self._handle)

    def write(self, batch: int) -> None:
        """The store has come this far."""
        os.pwrite(self._handle, f"{self._store} {batch:020d} {_crc(self._store, batch)}\n".encode(), 0)

    def close(self) -> None:
        if self._handle >= 0:
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1


def _crc(store: str, batch: int) -> str:
    return f"{zlib.crc32(f'{store} {batch}'.encode()):08x}"
