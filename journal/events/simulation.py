"""What the laboratory itself does to the parties: events for the timeline. Kafka has no such events, so they have
a stream of their own in a journal, which no service writes.
"""

from __future__ import annotations

from rejoin.journal.events.base import Event
from rejoin.journal.events.client import Range


class LabEvent(Event):
    """Something that was done from outside."""


class ConsumerStarted(LabEvent):
    """A process began another life."""

    client_id: str
    group_id: str
    life: int


class ConsumerStopped(LabEvent):
    """A process closed its consumer and ended."""

    client_id: str
    group_id: str


class ConsumerCrashed(LabEvent):
    """A process ended without a word."""

    client_id: str
    group_id: str


class ConsumerFailed(LabEvent):
    """A process ended with an error."""

    client_id: str
    group_id: str
    problem: str


class Done(LabEvent):
    """An event of the scenario took place; ``what`` says it in words."""

    what: str


class TopicWritten(LabEvent):
    """From now on a topic has so many partitions, and each of them gets so many records a second."""

    topic: str
    partitions: int
    records_per_second: float


class RecordsInHand(LabEvent):
    """The end has come while a consumer was at these records: they are neither processed nor lost."""

    client_id: str
    group_id: str
    ranges: list[Range]


class RunEnded(LabEvent):
    """The horizon: what is open now stays open."""

    seed: int
