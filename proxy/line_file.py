"""The journal's file: lines are appended, a full file is put aside under a number, and the oldest are removed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final

import structlog

FILE_BYTES: Final = 64 << 20
"""When a file is full."""
MOST_FILES: Final = 16
"""Full files that are kept."""
_REOPEN_SECONDS: Final = 5.0


class LineFile:
    """A file that lines are appended to. Where that fails, lines are counted as lost, and it is tried again later.

    The full ones are called as by log4j: ``kafka-request.log.1``, the higher number the newer one.
    """

    def __init__(self, path: Path, file_bytes: int = FILE_BYTES, most_files: int = MOST_FILES) -> None:
        """Raises ``OSError`` where the file cannot be opened."""
        self.path = path
        self.lost = 0
        """Lines that could not be written."""
        self.on_next_file: Callable[[], str] = str
        """Makes the first line of each further file, or an empty text."""
        self._file_bytes, self._most_files = file_bytes, most_files
        self._handle: Any = path.open("ab", buffering=0)
        self._bytes: int = self._handle.tell()
        self._failed_at = 0.0
        self._log: Any = structlog.get_logger("proxy").bind()

    def write(self, line: str) -> None:
        """Append a line."""
        if self._handle is None and not self._reopened():
            self.lost += 1
            return
        data = line.encode() + b"\n"
        if self._bytes and self._bytes + len(data) > self._file_bytes:
            data = self._next_file() + data
        try:
            if self._handle is None:
                self._handle = self.path.open("ab", buffering=0)
            written = self._handle.write(data)
            if written != len(data):
                raise OSError(f"{written} of {len(data)} bytes were written")
            self._bytes += written
        except OSError as problem:
            self.lost += 1
            self._failed_at = monotonic()
            self._log.error("proxy_journal_not_written", file=str(self.path), reason=problem.strerror or str(problem))
            self.close()

    def _next_file(self) -> bytes:
        """Put the full file aside; returns the first line of the next one."""
        self.close()
        try:
            full = self.full_files()
            self.path.rename(self.path.with_name(f"{self.path.name}.{_number(full[-1]) + 1 if full else 1}"))
            for oldest in full[: len(full) + 1 - self._most_files]:
                oldest.unlink(missing_ok=True)
        except OSError as problem:
            # It grows on: what clients say counts more than the size of a file.
            self._log.error("proxy_journal_not_renamed", file=str(self.path), reason=problem.strerror)
        self._bytes = 0
        first = self.on_next_file()
        return first.encode() + b"\n" if first else b""

    def full_files(self) -> list[Path]:
        """The files that are full, the oldest first."""
        pattern = re.compile(re.escape(self.path.name) + r"\.\d{1,15}")
        return sorted((each for each in self.path.parent.iterdir() if pattern.fullmatch(each.name)), key=_number)

    def _reopened(self) -> bool:
        if monotonic() - self._failed_at < _REOPEN_SECONDS:
            return False
        try:
            self._handle = self.path.open("ab", buffering=0)
            # What was cut short must not take the next line with it.
            self._handle.write(b"\n")
        except OSError:
            self._handle, self._failed_at = None, monotonic()
            return False
        self._log.warning("proxy_journal_written_again", file=str(self.path), lost=self.lost)
        return True

    def close(self) -> None:
        """Close it; the next line opens it again."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


def _number(path: Path) -> int:
    return int(path.name.rpartition(".")[2])
