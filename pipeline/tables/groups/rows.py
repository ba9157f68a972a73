"""The rows that tables are made of which follow a group event by event, and what all of those tables need.

Nothing here needs Spark or Arrow; the drivers are in :mod:`rejoin.pipeline.tables.whole_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.pipeline.event_fields import MS_A_DAY

TOPIC_EVENTS: Final = ("topic_created", "topic_grown", "topic_written")
"""Events that say how many partitions a topic has."""

COOPERATIVE: Final = ("cooperative-sticky",)
"""Assignors whose consumers keep their partitions during a rebalance; with all others they give up all."""

WANTS: Final = ("subscribing", "member_joined", "member_rejoined")
"""Events that may name the topics of a member."""

_EPOCH: Final = date(1970, 1, 1)

Report: TypeAlias = tuple[str, int, bool, int, float | None]
"""A topic, its partitions, whether the one who changed it says so, since when at least, and records a second."""
TopicPartition: TypeAlias = tuple[str, int]
RowValues: TypeAlias = tuple[Any, ...]
"""A row of a table, in the order of its columns."""


class EventOfGroup(NamedTuple):
    """The columns of an event that are looked at; those that a table does not read, or an event lacks, are none."""

    run_id: str
    group_id: str
    source: str
    node: str
    seq: int
    at_ms: int
    event: str
    ends_at_ms: int
    """When the journals of its run end."""
    reports: Sequence[Report] | None = None
    """What is known of the run's topics, with events that may name some: see :data:`Report`."""
    client_id: str | None = None
    member_id: str | None = None
    group_instance_id: str | None = None
    other_member_id: str | None = None
    generation: int | None = None
    member_epoch: int | None = None
    cause: str | None = None
    session_timeout_ms: int | None = None
    revocation_ms: int | None = None
    protocol: str | None = None
    group_type: str | None = None
    members: list[str] | None = None
    topics: list[str] | None = None
    partitions: list[TopicPartition] | None = None
    owned: list[TopicPartition] | None = None
    owned_after: list[tuple[str, str, int]] | None = None
    """Partitions with their members: member id, topic, partition."""
    confidence: str | None = None
    file: str | None = None
    line: int | None = None


class RebalanceOfGroup(NamedTuple):
    """The columns of a rebalance that other tables look at."""

    run_id: str
    group_id: str
    source: str
    node: str
    prepared_at_ms: int
    ended_at_ms: int | None
    outcome: str
    protocol: str | None
    group_type: str | None
    client_reason: str | None
    generation_from: int | None
    generation_to: int | None
    episode: int
    members_before: list[str] | None
    members_after: list[str] | None


Judge: TypeAlias = Callable[[list[EventOfGroup], list[RebalanceOfGroup]], Iterable[RowValues]]
"""Rows of a table from all events and rebalances of a group."""


def date_of(at_ms: int) -> date:
    """The day of an instant, in UTC."""
    return _EPOCH + timedelta(days=at_ms // MS_A_DAY)


def trusted(reports: Sequence[Report]) -> Iterator[Report]:
    """The reports that count: a simulation's nodes do not know the rate and learn late of growth."""
    better = {topic for topic, _, outside, *_ in reports if outside}
    return (report for report in reports if report[2] or report[0] not in better)


def wanted_partitions(events: Iterable[EventOfGroup]) -> dict[TopicPartition, int] | None:
    """Since when a group should own each partition: it exists, and a member has subscribed to its topic.

    None where no member names a topic that is known.
    """
    wanted: dict[str, int] = {}
    reports: Sequence[Report] | None = None
    for event in events:
        if event.event in WANTS and event.topics is not None:
            reports = event.reports
            for topic in event.topics:
                wanted[topic] = min(event.at_ms, wanted.get(topic, event.at_ms))
    since: dict[TopicPartition, int] = {}
    for topic, partition_count, _, since_ms, _ in trusted(reports or ()):
        if topic in wanted:
            for partition in range(partition_count):
                at = topic, partition
                since[at] = min(since.get(at, since_ms), since_ms)
    return {at: max(since_ms, wanted[at[0]]) for at, since_ms in since.items()} or None
