"""Who owned which partition from when to when, and when it had no owner.

Intervals come from the consumers' own events: assigned opens, revoked and lost close. Each consumer's are built on
their own and only then compared, so that two owners at one time show as an overlap; an interval that ends where the
next owner begins could never overlap. A crash leaves no event: an interval that is still open ends with the consumer's
end if the run reports it, else when the coordinator removed the member (a session that expired: less the session
timeout, as the last heartbeat was then), else when the same consumer rejoins without partitions, else with the
journal.

Where no consumer of a group wrote a journal, intervals are concluded from the assignments (``inferred``):
from Stable until the next rebalance begins, or with a cooperative assignor, and in consumer groups, until another gets
the partition.

Gaps are found against the furthest end of *all* earlier intervals, not of the last one alone, which nested intervals
would hide; touching is neither gap nor overlap. A partition is expected to be owned since a consumer of the group first
subscribed to its topic, or since the partition was made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from rejoin.pipeline.tables.groups import incarnations as consumers
from rejoin.pipeline.tables.groups.incarnations import Change, Owner, incarnations
from rejoin.pipeline.tables.groups.rows import (
    COOPERATIVE,
    EventOfGroup,
    GroupRows,
    RowValues,
    TopicPartition,
    date_of,
    wanted_partitions,
)
from rejoin.pipeline.vocabulary import CLIENT_LOG, EXACT, INFERRED

_GIVES: Final = ("rebalance_started", "rebalance_completed", "group_emptied")
_REMOVALS: Final = ("member_removed", "static_member_replaced")
_OF_MEMBERS: Final = ("member_id", "session_timeout_ms")
READS: Final = consumers.READS | {
    "subscribing": ("topics",),
    "member_joined": (*_OF_MEMBERS, "topics"),
    "member_rejoined": ("topics",),
    "member_removed": (*_OF_MEMBERS, "cause"),
    "static_member_replaced": (*_OF_MEMBERS, "other_member_id", "cause"),
    "rebalance_started": (),
    "rebalance_completed": ("generation", "protocol", "group_type", "owned_after", "file", "line"),
    "group_emptied": (),
}

Removals: TypeAlias = Mapping[str, tuple[int, str, int]]
"""By member: when the coordinator removed it first, why, and its session timeout (0 if that is not known)."""


class Interval(NamedTuple):
    """A time in which an owner has a partition. In order, the first to get it comes first."""

    from_ms: int
    to_ms: int
    owner: str
    end: str
    confidence: str | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    event: EventOfGroup
    """That began it."""

    @property
    def order(self) -> tuple[int, int, str, int]:
        """Its place among the intervals of a partition."""
        return self.from_ms, self.to_ms, self.owner, self.event.seq


Intervals: TypeAlias = Iterable[tuple[TopicPartition, Interval]]


def ownership_of_group(group: GroupRows) -> Iterator[RowValues]:
    """Rows of the table from all events of one group."""
    if not group.events:
        return
    intervals: dict[TopicPartition, list[Interval]] = defaultdict(list)
    for at, interval in intervals_of_group(group.events, group.run.ends_at_ms):
        intervals[at].append(interval)
    wanted = wanted_partitions(group) or {}
    about = _Place(group.events[0].run_id, group.events[0].group_id, group.run.ends_at_ms)
    for at in intervals | wanted:
        in_order = sorted(intervals.get(at, ()), key=attrgetter("order"))
        yield from _rows_of_partition(about, at, in_order, wanted.get(at))


class _Place(NamedTuple):
    """A group, and when its run ends."""

    run_id: str
    group_id: str
    ends_at_ms: int


def intervals_of_group(events: Sequence[EventOfGroup], ends_at_ms: int) -> Intervals:
    """Who owned which partition from when to when: by the consumers, or else by the coordinator."""
    if any(event.event == "partitions_assigned" for event in events):
        return _by_consumers(incarnations(events), _removals(events), ends_at_ms)
    return _by_coordinator(events, ends_at_ms)


def _removals(events: Iterable[EventOfGroup]) -> Removals:
    first: dict[str, tuple[int, str]] = {}
    timeouts: dict[str, int] = defaultdict(int)
    for event in events:
        if event.event not in (*_REMOVALS, "member_joined"):
            continue
        member_id = event.other_member_id if event.event == "static_member_replaced" else event.member_id
        if member_id is None:
            continue
        timeouts[member_id] = max(timeouts[member_id], event.session_timeout_ms or 0)
        if event.event in _REMOVALS:
            removal = event.at_ms, event.cause or "replaced"
            first[member_id] = min(first.get(member_id, removal), removal)
    return {member_id: (*removal, timeouts[member_id]) for member_id, removal in first.items()}


def _by_consumers(owners: Mapping[Owner, list[Change]], removals: Removals, ends_at_ms: int) -> Intervals:
    """Partitions that consumers reported as assigned, until they, or the coordinator, reported the end."""
    clients = Counter(client_id for _, client_id in owners)
    for (place, client_id), changes in owners.items():
        # A process that is known by its log alone is called by its client id: the file may have any name.
        is_named = client_id and clients[client_id] == 1 and changes and changes[0].event.source == CLIENT_LOG
        owner = client_id if is_named and client_id else "/".join(part for part in (place, client_id) if part)
        following: dict[TopicPartition, tuple[int, Change]] = {}
        gone: tuple[int, Change] | None = None
        # From the end: what comes next for a partition, and for all of them, is then known.
        for number, change in reversed(list(enumerate(changes))):
            if change.ends_all:
                gone = number, change
            if change.event.event not in _ABOUT_PARTITIONS:
                continue
            for at in change.event.partitions or ():
                if change.how == "assigned":
                    ends = [each for each in (following.get(at), gone) if each is not None]
                    yield at, _ended(change, min(ends)[1] if ends else None, owner, removals, ends_at_ms)
                following[at] = number, change


_ABOUT_PARTITIONS: Final = ("partitions_assigned", *consumers.RELEASES)


def _ended(began: Change, end: Change | None, owner: str, removals: Removals, ends_at_ms: int) -> Interval:
    event, how = began.event, end and end.how
    to_ms = end and end.event.at_ms
    word, confidence = "rebalance" if how == "assigned" else how or "open", event.confidence
    removal = removals.get(event.member_id or "")
    # A simulation knows which consumers died; all others still own what they had, removed or not.
    doubtful = how in (None, "gone") and event.source != "simulation"
    if doubtful and removal is not None and removal[0] >= event.at_ms:
        at_ms, cause, timeout_ms = removal
        died_ms = at_ms - (timeout_ms if cause == "session-expiry" else 0)
        to_ms, word = died_ms if to_ms is None else min(died_ms, to_ms), "expired"
        confidence = INFERRED
    elif how == "gone":
        confidence = INFERRED
    to_ms = max(event.at_ms, ends_at_ms if to_ms is None else to_ms)
    return Interval(
        event.at_ms, to_ms, owner, word, confidence, event.member_id, event.group_instance_id, event.client_id, event
    )


class _Given(NamedTuple):
    """An assignment of a partition to a member by the coordinator."""

    event: EventOfGroup
    until_ms: int | None
    member_id: str


def _by_coordinator(events: Iterable[EventOfGroup], ends_at_ms: int) -> Intervals:
    """Assignments of the coordinator until the next rebalance; a partition that a member keeps is one interval."""
    given: dict[TopicPartition, list[_Given]] = defaultdict(list)
    in_order = sorted((event for event in events if event.event in _GIVES), key=attrgetter("at_ms", "seq"))
    started_ms: int | None = None
    ended_ms: int | None = None
    for event in reversed(in_order):
        cooperative = event.protocol in COOPERATIVE or event.group_type == "consumer"
        until_ms = ended_ms if cooperative else started_ms
        for member_id, topic, partition in event.owned_after or ():
            given[topic, partition].append(_Given(event, until_ms, member_id))
        started_ms = event.at_ms
        if event.event != "rebalance_started":
            ended_ms = event.at_ms
    for at, rows in given.items():
        rows.reverse()
        first, last = rows[0], rows[0]
        for each in rows[1:]:
            if last.until_ms == each.event.at_ms and last.member_id == each.member_id:
                last = each
                continue
            yield at, _kept(first, last, ends_at_ms)
            first = last = each
        yield at, _kept(first, last, ends_at_ms)


def _kept(first: _Given, last: _Given, ends_at_ms: int) -> Interval:
    event, until_ms = first.event, last.until_ms
    to_ms = max(event.at_ms, ends_at_ms if until_ms is None else until_ms)
    end = "open" if until_ms is None else "rebalance"
    return Interval(event.at_ms, to_ms, first.member_id, end, INFERRED, first.member_id, None, None, event)


def _rows_of_partition(
    about: _Place, at: TopicPartition, intervals: Sequence[Interval], wanted_ms: int | None
) -> Iterator[RowValues]:
    """Rows of one partition: its intervals with their overlaps, and the times without an owner."""
    furthest: tuple[int, str] | None = None
    for each in intervals:
        common = 0 if furthest is None else min(furthest[0], each.to_ms) - each.from_ms
        yield _owned(at, each, max(0, common), furthest[1] if furthest is not None and common > 0 else None)
        if furthest is not None and furthest[0] < each.from_ms:
            yield _gap(about, at, furthest[0], each.from_ms, "between", each.confidence)
        if furthest is None or furthest < (each.to_ms, each.owner):
            furthest = each.to_ms, each.owner
    surest = min((each.confidence for each in intervals if each.confidence is not None), default=EXACT)
    first_ms = intervals[0].from_ms if intervals else about.ends_at_ms
    if wanted_ms is not None and wanted_ms < first_ms:
        yield _gap(about, at, wanted_ms, first_ms, "initial", surest)
    if furthest is not None and furthest[0] < about.ends_at_ms:
        yield _gap(about, at, furthest[0], about.ends_at_ms, "final", surest)


def _owned(at: TopicPartition, each: Interval, overlap_ms: int, overlaps: str | None) -> RowValues:
    event = each.event
    return (
        event.run_id,
        date_of(each.from_ms),
        event.group_id,
        *at,
        "owned",
        each.member_id,
        each.group_instance_id,
        each.client_id,
        each.owner,
        event.node,
        each.from_ms,
        each.to_ms,
        each.to_ms - each.from_ms,
        event.generation,
        each.end,
        overlap_ms,
        overlaps,
        each.confidence,
        event.source,
        event.seq,
        event.file,
        event.line,
    )


def _gap(about: _Place, at: TopicPartition, from_ms: int, to_ms: int, end: str, confidence: str | None) -> RowValues:
    who, where = (None,) * 5, (None,) * 4
    span = (from_ms, to_ms, to_ms - from_ms, None, end, None, None, confidence)
    return (about.run_id, date_of(from_ms), about.group_id, *at, "gap", *who, *span, *where)
