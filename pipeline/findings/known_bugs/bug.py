"""One known bug of a broker or a client: its versions, the sign of it, and its cure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rejoin.journal.kafka_logs.bug_signs import BROKER
from rejoin.journal.kafka_logs.clients.names import JAVA, KAFKAJS
from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.observed_rows import ObservedEvent

JIRA: Final = "https://issues.apache.org/jira/browse/KAFKA-"
Version: TypeAlias = tuple[int, ...]

_CALLED: Final = {BROKER: "a Kafka broker", JAVA: "a Java client", KAFKAJS: "KafkaJS"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a log shows a bug: events that prove it, or whole rebalances."""

    at_ms: int
    until_ms: int
    times: int
    evidence: tuple[ObservedEvent, ...] = ()
    rebalances: tuple[str, ...] = ()
    member_ids: tuple[str, ...] = ()


Sign: TypeAlias = Callable[[Causes], Sighting | None]


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A row of the table of known bugs.

    ``sign`` is the name of a line of :data:`~rejoin.journal.kafka_logs.bug_signs.BUG_SIGNS`, or a function that looks
    for it in what happened. ``shows`` says what the log has, and ``does`` what the bug does, each as a sentence.
    """

    name: str
    software: str
    title: str
    since: str
    """The first version that has the bug; empty where it was always there."""
    fixed: tuple[str, ...]
    """The first version without it, of each line of releases; the last one holds for all that follow."""
    sign: str | Sign
    shows: str
    does: str
    link: str
    cure: str = ""
    """Help beside a newer version."""
    setting: str | None = None

    def affects(self, version: str) -> bool:
        """Whether a version has the bug."""
        at = _parsed(version)
        if self.since and at < _parsed(self.since):
            return False
        fixes = [_parsed(each) for each in self.fixed]
        same_line = any(at[:2] == each[:2] and at >= each for each in fixes)
        return not same_line and at < max(fixes)

    @property
    def called(self) -> str:
        """The software, for people."""
        return _CALLED.get(self.software, self.software)

    @property
    def versions(self) -> str:
        """The versions that have the bug, for people."""
        *others, newest = self.fixed
        first = f"from {self.since} on and " if self.since else ""
        too = f" ({' and '.join(others)} {'has' if len(others) == 1 else 'have'} the fix)" if others else ""
        return f"{first}before {newest}{too}"


def _parsed(version: str) -> Version:
    numbers = tuple(int(each) for each in re.findall(r"\d+", version))
    return (*numbers, *(0,) * (3 - len(numbers)))
