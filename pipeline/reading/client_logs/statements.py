"""A client's log as statements: each line with the member, the generation and the group that its consumer had then.

Most lines name less than they are about. What a line lacks follows from the lines of the same consumer before it; a
group that only a later line names is that of the earlier ones, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import BinaryIO, Final

from rejoin.journal.kafka_logs.clients.names import AIOKAFKA, JAVA, KAFKA_PYTHON, RDKAFKA, SPRING
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.families import NAMELESS, ClientMessage
from rejoin.pipeline.reading.client_logs.layouts import ClientLines, ClientRecord
from rejoin.pipeline.reading.client_logs.logged_consumer.state import LoggedConsumer, ended, said_by
from rejoin.pipeline.reading.client_logs.signed import STREAMS_CLIENT, read_client_message
from rejoin.pipeline.reading.client_logs.signs import SignsOfClients
from rejoin.pipeline.reading.client_logs.unsigned import UnsignedLines

MOST_PENDING: Final = 2_000
"""Statements of a consumer that are kept until a line names its group."""
NO_GROUP: Final = "?"
"""Stands for the group of consumers whose log names none."""


@dataclass(slots=True)
class ClientCounts:
    """Counters of a file's records, by what they turned out to be."""

    statements: int = 0
    other: int = 0
    broken: int = 0
    guessed: int = 0
    """Statements of lines that were recognised by their text alone."""


class ClientLogFile:
    """Reads what consumers say in one file. ``node`` stands for the process, or for the file of several."""

    def __init__(
        self, file: str, node: str, zone: tzinfo = UTC, *, is_untimed: bool = False, words: Sequence[str] = ()
    ) -> None:
        """``words``: those of signs of bugs, and of versions, that the file has."""
        self.file = file
        self.counts = ClientCounts()
        self._lines = ClientLines(zone, is_untimed=is_untimed, keeps_errors=bool(words))
        self._node = node
        self._consumers: dict[tuple[str, str, str], LoggedConsumer] = {}
        self._unsigned = UnsignedLines()
        self._signs = SignsOfClients(words)
        self._latest_ms = 0

    @property
    def lines(self) -> ClientLines:
        """The file's records, and how many there were of what."""
        return self._lines

    def statements(self, file: BinaryIO | Iterable[bytes]) -> Iterator[Statement | BrokenLine]:
        """Every statement and every broken line. Nothing that stands in a file makes this fail."""
        for record in self._lines.records(file):
            if isinstance(record, BrokenLine):
                self.counts.broken += 1
                yield record
                continue
            message = read_client_message(record)
            if message is None or not message.kind:
                message = self._unsigned.read(record) or message
            else:
                self._unsigned.sees(message)
            at = self._place(record)
            signs = self._signs.read(record, at)
            if message is None or not message.kind:
                if signs:
                    self.counts.statements += 1
                    yield from self._with_consumers(None, signs, record.origin)
                elif message is None:
                    self.counts.other += 1
                else:
                    self.counts.broken += 1
                    why = "a consumer's line about its group that no known version prints, or one that is cut short"
                    yield BrokenLine(record.line, why, message.text[:500])
                continue
            self.counts.statements += 1
            self.counts.guessed += message.is_inferred
            if self._is_said_by_java(message, record.origin):
                continue
            consumer = self._consumer(message, record.origin)
            self._signs.speaks(consumer, record.origin)
            # A clock that is set back by little is a matter of threads.
            self._latest_ms = at.order_ms
            statement = replace(at, kind=message.kind, group=consumer.group, text=message.text[:500])
            if message.is_inferred:
                statement = replace(statement, values={"inferred": True})
            for each in said_by(consumer, message, statement):
                yield from self._with_group(consumer, each)
            yield from self._with_consumers(consumer, signs, record.origin)
        for consumer in self._consumers.values():
            for each in ended(consumer):
                yield from self._with_group(consumer, each)
        silent = []
        for consumer, each in self._signs.at_the_end(self._consumers):
            silent.append(consumer)
            yield from self._with_group(consumer, each)
        for consumer in (*self._consumers.values(), *silent):
            yield from _released(consumer)

    def _place(self, record: ClientRecord) -> Statement:
        """Where and when a record was written, as a statement that says nothing yet."""
        node = f"{self._node}/{record.origin}" if record.origin else self._node
        latest = max(self._latest_ms, record.at_ms) if record.at_ms > self._latest_ms - 1_000 else record.at_ms
        return Statement("", None, record.at_ms, latest, node, self.file, record.line, record.text[:500])

    def _with_consumers(
        self, consumer: LoggedConsumer | None, signs: Iterable[Statement], origin: str
    ) -> Iterator[Statement]:
        for sign in signs:
            for whose, each in self._signs.of_consumer(consumer, sign, origin):
                yield from self._with_group(whose, each)

    def _is_said_by_java(self, message: ClientMessage, origin: str) -> bool:
        """Whether a framework repeats what consumers of this file log themselves: their partitions, or their states."""
        if message.kind == STREAMS_CLIENT:
            return any(
                (client or "").startswith(f"{message.client_id}-StreamThread-") and where == origin
                for _, client, where in self._consumers
            )
        return (
            message.family == SPRING
            and message.kind.startswith("container_")
            and any(
                family == JAVA and where == origin and consumer.group in (message.group_id, None)
                for (family, _, where), consumer in self._consumers.items()
            )
        )

    def _consumer(self, message: ClientMessage, origin: str) -> LoggedConsumer:
        # Errors that applications log in their own words name no client.
        is_nameless = message.family in (JAVA, RDKAFKA) and message.client_id is None
        is_around = message.family == SPRING or is_nameless
        if is_around and (known := self._only_consumer(message, origin)) is not None:
            return known
        of_file = message.family in NAMELESS
        key = (message.family, "" if of_file else message.client_id or "", origin)
        consumer = self._consumers.get(key) or self._taken_for_another(message.family, key)
        if consumer is None:
            consumer = self._consumers[key] = LoggedConsumer(
                message.family, "/".join(key), node=f"{self._node}/{origin}" if origin else self._node
            )
        consumer.group = message.group_id or consumer.group
        consumer.client_id = message.client_id or consumer.client_id
        consumer.instance = message.instance or consumer.instance
        return consumer

    def _taken_for_another(self, family: str, key: tuple[str, str, str]) -> LoggedConsumer | None:
        """A Python consumer whose first lines both libraries print, now that a line has shown which one it is."""
        other = {KAFKA_PYTHON: AIOKAFKA, AIOKAFKA: KAFKA_PYTHON}.get(family)
        before = self._consumers.get((str(other), *key[1:]))
        if before is None or before.group is not None or len(before.pending) == MOST_PENDING:
            return None
        del self._consumers[str(other), *key[1:]]
        self._consumers[key] = before
        before.family, before.name = family, "/".join(key)
        before.pending = [
            replace(each, values={**each.values, "family": family, "consumer": before.name}) for each in before.pending
        ]
        return before

    def _only_consumer(self, message: ClientMessage, origin: str) -> LoggedConsumer | None:
        """The consumer that a line is about which names none, where the file has only one that it can be."""
        of_family = JAVA if message.family == SPRING else message.family
        found = [
            consumer
            for (family, _, where), consumer in self._consumers.items()
            if family == of_family and where == origin and message.group_id in (None, consumer.group)
        ]
        return found[0] if len(found) == 1 else None

    def _with_group(self, consumer: LoggedConsumer, statement: Statement) -> Iterator[Statement]:
        if consumer.group is None and len(consumer.pending) < MOST_PENDING:
            consumer.pending.append(statement)
            return
        yield from _released(consumer)
        yield replace(statement, group=consumer.group)


def _released(consumer: LoggedConsumer) -> Iterator[Statement]:
    pending, consumer.pending = consumer.pending, []
    for each in pending:
        yield replace(each, group=consumer.group, values={**each.values, "client_id": consumer.client_id})
