"""The table of known bugs."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.findings.known_bugs.brokers import BROKER_BUGS
from rejoin.pipeline.findings.known_bugs.bug import KnownBug
from rejoin.pipeline.findings.known_bugs.java import JAVA_BUGS
from rejoin.pipeline.findings.known_bugs.librdkafka import RDKAFKA_BUGS
from rejoin.pipeline.findings.known_bugs.others import OTHER_BUGS

BUGS: Final[tuple[KnownBug, ...]] = (*BROKER_BUGS, *JAVA_BUGS, *RDKAFKA_BUGS, *OTHER_BUGS)
"""In the order of the documentation."""
