"""A mistake in a scenario, as the rules about its parts report it."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A mistake, and the key at which it is reported."""

    path: tuple[str | int, ...]
    problem: str
