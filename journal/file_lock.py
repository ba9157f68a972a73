"""A file that one process holds at a time, for the one writer of a directory.

Kept instead of the library ``filelock``: that one falls back to a file that outlives a process that is killed where
there is no ``flock``, its older versions empty the file that names the holder, and all that is needed is below.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rejoin.posix import PosixNeeded


class FileLocked(Exception):
    """Another process holds the file. ``holder`` is its id as it stands there, or empty."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by another process" + (f", {holder}" if holder else ""))
        self.holder = holder


class FileLock:
    """Held from when it is made until ``release``, or until the process ends, however that happens.

    The file stays where it is: one that is removed could be held twice.
    """

    def __init__(self, path: Path) -> None:
        """Raises :class:`FileLocked`, or ``OSError`` where there can be no such file.

        Raises :class:`PosixNeeded` on Windows.
        """
        try:
            import fcntl  # noqa: PLC0415 (Windows has no such module)
        except ImportError:
            raise PosixNeeded(f"locking {path.parent}") from None
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._handle, 32, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise FileLocked(path, holder) from None
        except BaseException:
            os.close(self._handle)
            raise
        # A process that is refused reads which one holds it. A full disk does not prevent holding it.
        with suppress(OSError):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let others have it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@contextmanager
def sole_writer(folder: Path, refusal: Callable[[str], Exception]) -> Iterator[None]:
    """Make the folder if there is none, and hold its ``.lock``. Raises the refusal of a text that says what to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
    except FileLocked:
        raise refusal(f"{folder} is being written by another process; give another folder") from None
    except OSError as problem:
        raise refusal(f"{folder} cannot be written: {problem.strerror}; give another folder") from None
    try:
        yield
    finally:
        lock.release()
