"""The common part of all libraries' logs: the template for each event, and the values in its lines.

The words are in :mod:`rejoin.journal.kafka_logs.clients`, in the tables that the reader has, too. Times are
milliseconds since 1970 and are written in UTC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.events.client import ConsumerEvent, MemberEvent
from rejoin.journal.kafka_logs.template import Template, Version

ALREADY_REBALANCING: Final = "group is already rebalancing"
MEMBER_ID_GIVEN: Final = "need to re-join with the given member-id"
METADATA_CHANGED: Final = "cached metadata has changed"
NOT_A_MEMBER: Final = "not part of an active group"
SESSION_TIMED_OUT: Final = "session timed out"
"""First words of our consumer's reasons and problems, for which libraries have lines of their own."""

Line = tuple[str, str, dict[str, Any]]
"""The kind of a line, its variant, and its fields."""


class UnknownLine(LookupError):
    """A library has no line of this kind in this version."""


class ClientLog(ABC):
    """The log of one consumer, over all of its processes. Fed with every event, it knows what its lines quote.

    ``settings`` are those of the consumer that its library logs, under Kafka's names.
    """

    lines_of_library: ClassVar[tuple[Template, ...]]
    newest: ClassVar[Version]

    def __init__(
        self,
        client_id: str,
        group_id: str,
        *,
        version: Version | None = None,
        instance_id: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.client_id, self.group_id, self.instance_id = client_id, group_id, instance_id
        self.version = version or self.newest
        self.settings = dict(settings or {})
        self.member = ""
        self.generation = -1
        self.coordinator = ""
        self.resized: dict[str, tuple[int, int]] = {}
        self._templates = {(each.kind, each.variant): each for each in reversed(self.lines_of_library)}

    def started(self, at_ms: int) -> list[str]:
        """A process begins."""
        self.member, self.generation = "", -1
        return self._written(self.on_start(), at_ms)

    def topic_resized(self, topic: str, before: int, after: int, at_ms: int) -> list[str]:
        """The consumer's metadata show that a topic has another number of partitions."""
        self.resized[topic] = (before, after)
        return self._written(self.on_resize(topic, before, after), at_ms)

    def lines(self, event: ConsumerEvent, at_ms: int) -> list[str]:
        """Log lines of the library for an event; none for many. Raises :class:`UnknownLine` for a line that its
        table lacks."""
        written = self._written(self.on_event(event), at_ms)
        if isinstance(event, MemberEvent):
            self.member, self.generation = event.member_id or self.member, event.generation
        return written

    @abstractmethod
    def on_start(self) -> Iterable[Line]:
        """The lines with which a process begins."""

    @abstractmethod
    def on_event(self, event: ConsumerEvent) -> Iterable[Line]:
        """The lines of an event."""

    @abstractmethod
    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        """A line in the layout that the library, or its usual logger, has."""

    def on_resize(self, topic: str, before: int, after: int) -> Iterable[Line]:
        """The lines about a topic that has grown."""
        return ()

    def _written(self, lines: Iterable[Line], at_ms: int) -> list[str]:
        return [line for kind, variant, values in lines for line in self._line(kind, variant, values, at_ms)]

    def _line(self, kind: str, variant: str, values: Mapping[str, Any], at_ms: int) -> Iterator[str]:
        template = self._templates.get((kind, variant))
        if template is None:
            raise UnknownLine(f"{type(self).__name__} has no line {kind!r} {variant!r}; expected one of its table")
        if template.is_in(self.version):
            known: dict[str, Any] = {
                "group_id": self.group_id,
                "client_id": self.client_id,
                "coordinator": self.coordinator,
            }
            known |= {"member": self.member, "generation": self.generation, **values}
            yield self.framed(template, template.format(self.version, known), known, at_ms)


def utc(at_ms: int, layout: str) -> str:
    """An instant, without its milliseconds."""
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime(layout)


def pairs(partitions: PartitionsByTopic) -> list[tuple[str, int]]:
    """Partitions one by one."""
    return [(topic, number) for topic, numbers in partitions.items() for number in numbers]
