"""Files that appear whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


class FileNotWritten(Exception):
    """A file that cannot be written; the text is for the person who named it."""


def check_writable(option: str, path: Path) -> None:
    """Raise :class:`FileNotWritten` where no file can be written."""
    if os.path.lexists(path) and not path.is_file():
        raise FileNotWritten(f"{option} {path}: not a regular file; expected a file to write")
    if not path.parent.is_dir():
        raise FileNotWritten(
            f"{option} {path}: there is no directory {path.parent}; make the directory, or name another file"
        )


@contextmanager
def atomic_file(option: str, path: Path) -> Iterator[TextIO]:
    """A file to write, which takes its name when all of it is on the disk. Raises :class:`FileNotWritten`."""
    aside = path.with_name(path.name + ".new")
    try:
        check_writable(option, path)
        try:
            with aside.open("w", encoding="utf-8") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            aside.replace(path)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
    except OSError as problem:
        said = f"{option} {path}: cannot be written: {problem.strerror}"
        raise FileNotWritten(f"{said}; expected a file in a directory that you may write to") from problem
