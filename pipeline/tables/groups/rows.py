"""The rows of one group from which tables are made, and rules that several of these tables share.

Nothing here needs Spark or Arrow; the drivers are in :mod:`rejoin.pipeline.tables.whole_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
Ownership: TypeAlias = tuple[str, str, int]
"""A member, and the topic and partition that it has."""
Row: TypeAlias = dict[str, Any]
RowValues: TypeAlias = tuple[Any, ...]
"""A row of a table, in the order of its columns."""


class EventOfGroup(NamedTuple):
    """An event as the functions of a group's rows see it; columns that a table does not read are none."""

    run_id: str
    group_id: str
    source: str
    node: str
    seq: int
    at_ms: int
    event: str
    file: str | None = None
    line: int | None = None
    confidence: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    client_reason: str | None = None
    software: str | None = None
    member_id: str | None = None
    group_instance_id: str | None = None
    other_member_id: str | None = None
    member_epoch: int | None = None
    member_type: str | None = None
    kind: str | None = None
    generation: int | None = None
    state: str | None = None
    previous_state: str | None = None
    cause: str | None = None
    cause_member_id: str | None = None
    cause_group_instance_id: str | None = None
    initial: bool | None = None
    rebalance: bool | None = None
    leader: str | None = None
    previous_leader: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    revocation_ms: int | None = None
    join_ms: int | None = None
    sync_ms: int | None = None
    protocol: str | None = None
    protocols: list[str] | None = None
    group_type: str | None = None
    members: list[str] | None = None
    members_before: list[str] | None = None
    absent: list[str] | None = None
    topics: list[str] | None = None
    moved: int | None = None
    regained: int | None = None
    partitions: Sequence[TopicPartition] | None = None
    """The table of rebalances reads only its length, and is given a range."""
    owned: Sequence[TopicPartition] | None = None
    owned_before: Sequence[Ownership] | None = None
    """Given as a range, too, where the event says how many partitions moved."""
    owned_after: Sequence[Ownership] | None = None
    measured: Sequence[Any] | None = None
    """The columns :data:`MEASURES`, which only one table reads."""


ALWAYS: Final = EventOfGroup._fields[2:7]
"""Columns of an event that every table reads, beside the run and the group."""
_PARTITIONS: Final = ("topic", "partition")
_STRUCTS: Final = [
    (at, _PARTITIONS if name in ("partitions", "owned") else ("member_id", *_PARTITIONS))
    for at, name in enumerate(EventOfGroup._fields)
    if name in ("partitions", "owned", "owned_before", "owned_after")
]
"""Places of columns that are lists of structs, with the fields of these."""


def event_of(row: Mapping[str, Any]) -> EventOfGroup:
    """A row of ``events``, or some columns of it, as an event of its group."""
    values: list[Any] = [row.get(name) for name in EventOfGroup._fields]
    for at, parts in _STRUCTS:
        if values[at] is not None:
            values[at] = [tuple(each[part] for part in parts) for each in values[at]]
    return EventOfGroup._make(values)


class RebalanceOfGroup(NamedTuple):
    """The columns of a rebalance that other tables look at; those that a table does not read are none."""

    run_id: str
    group_id: str
    prepared_at_ms: int
    source: str = ""
    node: str = ""
    ended_at_ms: int | None = None
    outcome: str = ""
    protocol: str | None = None
    group_type: str | None = None
    cause_member_id: str | None = None
    client_reason: str | None = None
    generation_from: int | None = None
    generation_to: int | None = None
    episode: int = 0
    members_before: list[str] | None = None
    members_after: list[str] | None = None


class RunSummary(NamedTuple):
    """The part of a run's events that every group of the run needs."""

    ends_at_ms: int
    """When the journals end."""
    is_complete: bool = False
    """The run reported its end."""
    reports: Sequence[Report] = ()


class GroupRows(NamedTuple):
    """All rows of one group that a table is made of, in any order."""

    events: Sequence[EventOfGroup]
    rebalances: Sequence[RebalanceOfGroup]
    run: RunSummary


RowsOfGroup: TypeAlias = Callable[[GroupRows], Iterable["RowValues | Row"]]
"""A table as a function of one group: its rows, as values in the order of the columns or by the columns' names."""


def date_of(at_ms: int) -> date:
    """The day of an instant, in UTC."""
    return _EPOCH + timedelta(days=at_ms // MS_A_DAY)


def trusted(reports: Sequence[Report]) -> Iterator[Report]:
    """The reports that count: a simulation's nodes do not know the rate and learn late of growth."""
    better = {topic for topic, _, outside, *_ in reports if outside}
    return (report for report in reports if report[2] or report[0] not in better)


def wanted_partitions(group: GroupRows) -> dict[TopicPartition, int] | None:
    """Since when a group should own each partition: it exists, and a member has subscribed to its topic.

    None where no member names a topic that is known.
    """
    wanted: dict[str, int] = {}
    for event in group.events:
        if event.event in WANTS and event.topics is not None:
            for topic in event.topics:
                wanted[topic] = min(event.at_ms, wanted.get(topic, event.at_ms))
    since: dict[TopicPartition, int] = {}
    for topic, partition_count, _, since_ms, _ in trusted(group.run.reports) if wanted else ():
        if topic in wanted:
            for partition in range(partition_count):
                at = topic, partition
                since[at] = min(since.get(at, since_ms), since_ms)
    return {at: max(since_ms, wanted[at[0]]) for at, since_ms in since.items()} or None
