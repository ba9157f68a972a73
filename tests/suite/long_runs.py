"""Cases and seeds that ``make test-long`` adds: each is like one that every run has, and costs seconds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

IS_LONG: Final = bool(os.environ.get("REJOIN_LONG"))
"""Whether this is a long run."""
SEARCH_SEEDS: Final = int(os.environ.get("REJOIN_SEARCH_SEEDS", "100" if IS_LONG else "10"))
"""Seeds of each search that is to find nothing; ``make search`` and its like play thousands."""


def in_long_runs(*more: Any, always: Iterable[Any] = ()) -> list[Any]:
    """The cases of a test: those of every run, and in a long run ``more``."""
    return [*always, *more] if IS_LONG else [*always]
