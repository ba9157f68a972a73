"""Standard input as a file: ``-`` among the inputs of ``rejoin report`` and ``rejoin why``."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STANDARD_INPUT: Final = "-"
_PREFIX: Final = "rejoin-"
_NAME: Final = "standard-input/log"
"""As the folder and the file of a log: consumers and brokers in it are called by these."""
_COPY: Final = re.compile(rf"(?:/[^/\s]+)*/{_PREFIX}\w+/{_NAME}\b")


@contextmanager
def with_standard_input(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The paths, with a copy of what comes on standard input in place of ``-``: it is read several times."""
    if not any(str(path) == STANDARD_INPUT for path in paths):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        copy = Path(folder, _NAME)
        copy.parent.mkdir()
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield list(dict.fromkeys(copy if str(path) == STANDARD_INPUT else path for path in paths))


def without_copy(problem: object) -> str:
    """A problem that names standard input instead of its copy."""
    return _COPY.sub("standard input", str(problem))
