"""The table of known bugs."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.findings.known_bugs.bug import KnownBug
from rejoin.pipeline.findings.known_bugs.java import JAVA_BUGS

BUGS: Final[tuple[KnownBug, ...]] = (*JAVA_BUGS,)
"""By software: brokers first."""
