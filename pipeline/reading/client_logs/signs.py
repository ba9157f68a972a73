"""Signs of known bugs in a client's log, and the versions that it states, with the consumer that each is about.

Most such lines name no consumer: an exception is about the one of that client that spoke last in its process, and a
version is that of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rejoin.journal.kafka_logs.bug_signs import BROKER, WORDS, signs_in, versions_in
from rejoin.journal.kafka_logs.clients.names import JAVA, SMALLRYE, SPRING, STREAMS
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.layouts import ClientRecord
from rejoin.pipeline.reading.client_logs.logged_consumer.state import LoggedConsumer, about
from rejoin.pipeline.vocabulary import BUG_SIGN, SOFTWARE_VERSION

_RELEASED_AS: Final = {STREAMS: JAVA, SPRING: JAVA, SMALLRYE: JAVA}
"""Families of lines whose consumer is another library's."""

TRACES: Final = ("stack", "stack_trace", "stacktrace", "exception", "error", "err", "caller", "callers")
"""Fields of JSON in which loggers put exceptions, and where a line comes from."""

Consumers = Mapping[tuple[str, str, str], LoggedConsumer]


def software_of(family: str) -> str:
    """The library whose version a family of lines has."""
    return _RELEASED_AS.get(family, family)


class SignsOfClients:
    """Collects what one file has."""

    def __init__(self, words: Sequence[str] = WORDS) -> None:
        """``words``: those of signs and versions that the file has."""
        self._words = words
        self._versions: dict[tuple[str, str, str], Statement] = {}
        self._waiting: list[tuple[str, str, Statement]] = []
        self._spoke_last: dict[tuple[str, str], LoggedConsumer] = {}

    def speaks(self, consumer: LoggedConsumer, origin: str) -> None:
        """Take note of a consumer's line."""
        self._spoke_last[software_of(consumer.family), origin] = consumer

    def read(self, record: ClientRecord, statement: Statement) -> list[Statement]:
        """The signs of a record, each with its software. ``statement`` has the record's place."""
        if not self._words:
            return []
        below = (*record.more, *(text for name in TRACES if isinstance(text := record.fields.get(name), str)))
        for software, version in versions_in(record.text, below, self._words):
            key = (software, record.origin, version)
            self._versions.setdefault(key, _said(statement, SOFTWARE_VERSION, software, f"{software} {version}"))
        return [
            _said(statement, BUG_SIGN, sign.software, sign.name)
            for sign in signs_in(record.text, below, self._words)
            if sign.software != BROKER
        ]

    def of_consumer(
        self, consumer: LoggedConsumer | None, sign: Statement, origin: str
    ) -> Iterator[tuple[LoggedConsumer, Statement]]:
        """A sign with its consumer; none yet where no consumer of its software has spoken."""
        software = sign.values["family"]
        if consumer is None or software_of(consumer.family) != software:
            consumer = self._spoke_last.get((software, origin))
        if consumer is None:
            self._waiting.append((software, origin, sign))
        else:
            yield consumer, about(consumer, sign, {"reason": sign.values["reason"]})

    def at_the_end(self, consumers: Consumers) -> Iterator[tuple[LoggedConsumer, Statement]]:
        """Signs that waited for a consumer, and the versions of all consumers."""
        known = dict(consumers)
        for software, origin, sign in self._waiting:
            found = _consumers_of(known, software, origin)
            if not found:
                made = LoggedConsumer(software, f"{software}//{origin}", node=sign.node)
                known[software, "", origin] = made
                found = [made]
            yield found[0], about(found[0], sign, {"reason": sign.values["reason"]})
        for (software, origin, _), said in self._versions.items():
            for consumer in _consumers_of(known, software, origin):
                yield consumer, about(consumer, said, {"reason": said.values["reason"]})


def _consumers_of(consumers: Consumers, software: str, origin: str) -> list[LoggedConsumer]:
    return [
        consumer
        for (family, _, where), consumer in consumers.items()
        if software_of(family) == software and where == origin
    ]


def _said(statement: Statement, kind: str, software: str, what: str) -> Statement:
    return replace(statement, kind=kind, values={"family": software, "reason": what})
