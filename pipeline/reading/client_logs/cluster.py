"""Brokers and topics in consumers' logs: when their coordinator was away, and when a topic grew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.groups.membership import INFERRED, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.families import STARTED
from rejoin.pipeline.vocabulary import CLIENT_LOG

COORDINATOR: Final = "coordinator"
"""Stands for the broker that coordinated the group: consumers' logs do not name it."""
TOGETHER_MS: Final = 10_000
"""Consumers that lose their coordinator within this lose it for the same reason."""
MOMENT_MS: Final = 1_000
"""A coordinator that is found again within this was not away."""
SETTLED: Final = 3
"""In so many generations after a group's first one all partitions of its topics have been assigned."""

ConsumerKey = tuple[str, str]
"""A process, and which of its consumers."""


def concluded(group_id: str, event: str, at_ms: int, source: Statement, **columns: Any) -> EventRow:
    """An event that no consumer wrote: it follows from what they did. ``source`` is a line that shows it."""
    row: EventRow = {
        "source": CLIENT_LOG,
        "event": event,
        "at_ms": at_ms,
        "node": COORDINATOR,
        "file": source.file,
        "line": source.line,
        "confidence": INFERRED,
        "group_id": group_id,
    }
    return row | {name: value for name, value in columns.items() if value is not None}


@dataclass(slots=True)
class _Outage:
    """Consumers without a coordinator at one time."""

    lost: Statement
    """The first that says so."""
    last_found_ms: int
    found: list[int] = field(default_factory=list)
    """When each consumer had found it again."""

    def overlaps(self, lost_ms: int, found_ms: int) -> bool:
        return lost_ms <= self.last_found_ms + TOGETHER_MS and found_ms >= self.lost.at_ms - TOGETHER_MS

    def add(self, lost: Statement, found_ms: int) -> None:
        if lost.at_ms < self.lost.at_ms:
            self.lost = lost
        self.last_found_ms = max(self.last_found_ms, found_ms)
        self.found.append(found_ms)


class ObservedCluster:
    """Follows the consumers of one group."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._consumers: set[ConsumerKey] = set()
        self._joined: set[ConsumerKey] = set()
        self._lost: dict[ConsumerKey, Statement] = {}
        self._outages: list[_Outage] = []
        self._all_found_at = 0
        """When the last of all outages ended."""
        self._grown: dict[tuple[str, int], Statement] = {}
        self._assigned: dict[str, dict[int, tuple[int, Statement]]] = {}

    def take(self, statement: Statement, who: ConsumerKey) -> None:
        """Take in what a consumer says."""
        kind, values = statement.kind, statement.values
        self._consumers.add(who)
        for topic, before, after in values.get("grown", ()):
            more = {"topic": topic, "before": before, "after": after}
            self._grown.setdefault((topic, after), replace(statement, values=values | more))
        # Members of a share group have some of the partitions, which says nothing of the topic.
        if kind == "partitions_assigned" and values.get("group_protocol") != "share":
            number = int(values.get("generation") or 0)
            for topic, partition in values["partitions"]:
                self._assigned.setdefault(topic, {}).setdefault(partition, (number, statement))
        if kind in ("generation_joined", "group_synced"):
            self._joined.add(who)
        if kind == STARTED:
            # The process before let go of its coordinator as it ended.
            self._lost.pop(who, None)
            self._joined.discard(who)
        # Before it has joined, a consumer may look for its coordinator for other reasons.
        if kind == "coordinator_lost" and who in self._joined:
            self._lost.setdefault(who, statement)
        elif kind in ("coordinator_found", "generation_joined", "group_synced") and who in self._lost:
            self._add_outage(self._lost.pop(who), statement.at_ms)

    def events(self) -> Iterator[EventRow]:
        """Events of the cluster from all statements."""
        yield from self._of_outages()
        yield from self._of_growth()

    def _add_outage(self, lost: Statement, found_ms: int) -> None:
        """Add to the newest outage that overlaps, or begin one."""
        outages = reversed(self._outages) if lost.at_ms <= self._all_found_at + TOGETHER_MS else ()
        outage = next((each for each in outages if each.overlaps(lost.at_ms, found_ms)), None)
        if outage is None:
            outage = _Outage(lost, found_ms)
            self._outages.append(outage)
        outage.add(lost, found_ms)
        self._all_found_at = max(self._all_found_at, found_ms)

    def _of_outages(self) -> Iterator[EventRow]:
        """The coordinator was away where most consumers lost it together, and for longer than a moment."""
        for outage in self._outages:
            back = [at_ms for at_ms in outage.found if at_ms - outage.lost.at_ms >= MOMENT_MS]
            consumers = len(outage.found)
            if consumers < 2 or 2 * consumers < len(self._consumers) or not back:
                continue
            yield concluded(self._group_id, "broker_stopped", outage.lost.at_ms, outage.lost)
            yield concluded(self._group_id, "group_loaded", min(back), outage.lost)

    def _of_growth(self) -> Iterator[EventRow]:
        for statement in self._grown.values():
            values = statement.values
            yield self._grew(statement, values["topic"], values["before"], values["after"])
        reported = {topic for topic, _ in self._grown}
        for topic, seen in self._assigned.items():
            if topic not in reported:
                yield from self._unreported_growth(topic, seen)

    def _unreported_growth(self, topic: str, seen: dict[int, tuple[int, Statement]]) -> Iterator[EventRow]:
        """Without a line that says so, a topic has grown where partitions above all earlier ones are assigned."""
        first = min(number for number, _ in seen.values())
        early = {each for each, (number, _) in seen.items() if number <= first + SETTLED}
        late = [each for each in seen if each not in early]
        if late and sorted(early) == list(range(len(early))) and min(late) >= len(early):
            statement = min((seen[each][1] for each in late), key=lambda each: each.at_ms)
            yield self._grew(statement, topic, len(early), max(late) + 1)

    def _grew(self, statement: Statement, topic: str, before: int, after: int) -> EventRow:
        counts = {"partition_count": after, "previous_partition_count": before}
        return concluded(self._group_id, "topic_grown", statement.at_ms, statement, topic=topic, **counts)
