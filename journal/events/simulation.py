"""The laboratory's own actions: events for the timeline. Kafka has no such events, so they have
a stream of their own in a journal, which no service writes.
"""

from __future__ import annotations

from rejoin.journal.events.base import Event, Long
from rejoin.journal.events.client import Range


class LabEvent(Event):
    """Something that was done from outside."""


class ConsumerStarted(LabEvent):
    """A process started, for the first time or again."""

    client_id: str
    group_id: str
    incarnation: int


class ConsumerStopped(LabEvent):
    """A process closed its consumer and ended."""

    client_id: str
    group_id: str


class ConsumerCrashed(LabEvent):
    """A process ended silently."""

    client_id: str
    group_id: str


class ConsumerFailed(LabEvent):
    """A process ended with an error."""

    client_id: str
    group_id: str
    problem: str


class ScenarioAction(LabEvent):
    """The scenario did something; ``action`` says it in words."""

    action: str


class TopicWritten(LabEvent):
    """From now on a topic has so many partitions, and each of them gets so many records a second."""

    topic: str
    partition_count: int
    records_per_second: float


class RecordsInHand(LabEvent):
    """The end has come while a consumer was at these records: they are neither processed nor lost."""

    client_id: str
    group_id: str
    ranges: list[Range]


class RecordsCompared(LabEvent):
    """A reader's results at the end of the run, beside the input of the transforms that write to its topics.

    Of the records that went in, each was read, is lost, is written and unread, or is still to come.
    """

    reader: str
    isolation_level: str
    topics: list[str]
    transform_groups: list[str]
    commit_modes: list[str]
    records_in: Long
    records_read: Long
    records_twice: Long
    records_lost: Long
    records_out_of_order: Long
    records_aborted: Long
    records_unread: Long
    records_to_come: Long


class RunEnded(LabEvent):
    """The horizon: what is open now stays open."""

    seed: Long
