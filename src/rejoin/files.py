"""Reading the files that options and settings name: all of one, and never more than it may have."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 2**20
"""More than any file of settings, users, keys or certificates has."""


def read_bounded(path: str | Path, most_bytes: int = MOST_BYTES) -> bytes:
    """All bytes of a file. Raises ``OSError``, also for a file of more bytes, such as ``/dev/zero``."""
    with Path(path).open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"has more than {most_bytes:,} bytes", str(path))
    return data


def read_text(path: str | Path, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file in UTF-8, with line ends as they are. Raises ``OSError`` and ``UnicodeDecodeError``."""
    return read_bounded(path, most_bytes).decode("utf-8")


def check_size(path: str | Path) -> None:
    """Raise ``OSError`` for a file that another library is about to read whole, and that is too large.

    A pipe can be read once only, and has a writer of the user's own.
    """
    if not Path(path).is_fifo():
        read_bounded(path)
