"""How far the groups of a run are behind the logs that they read: their commits, and their lag in any instant."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import OffsetsCommitted, OffsetsDeleted, TransactionEnded
from rejoin.journal.events.share_partitions import (
    SharePartitionEvent,
    SharePartitionLoaded,
    ShareRecordsAcknowledged,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareWindowMoved,
)
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.share_records import ShareAccounting
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.share_groups import is_share_group
from rejoin.simulation.simulation import Simulation

COMMIT_EVENTS: Final = (OffsetsCommitted, OffsetsDeleted, TransactionEnded)
SHARE_EVENTS: Final = (
    SharePartitionLoaded,
    ShareRecordsAcknowledged,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareWindowMoved,
)
MOST_POINTS: Final = 2_000
MOST_COMMITS: Final = 20_000
"""More commits between two instants are thinned out."""
_DELETED: Final = -1


class _Commits:
    """The offsets of one partition that a group has committed, in the order of time; -1: none any more."""

    __slots__ = ("offsets", "times")

    def __init__(self) -> None:
        self.times: list[Millis] = []
        self.offsets: list[int] = []

    def at(self, instant: Millis) -> int:
        count = bisect_right(self.times, instant)
        return self.offsets[count - 1] if count else _DELETED


class CommitHistory:
    """The commits of a run, by group and partition."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, _Commits]] = {}

    def on_event(self, _: Actor, event: Event, now: Millis) -> None:
        """Take in an event about offsets."""
        match event:
            case OffsetsCommitted() if event.producer_id is None:
                self._add(event, now)
            case TransactionEnded() if event.committed:
                self._add(event, now)
            case OffsetsDeleted():
                for each in event.offsets:
                    self._of(event.group_id, each.topic, each.partition, now, _DELETED)
            case _:
                pass

    def _add(self, event: OffsetsCommitted | TransactionEnded, now: Millis) -> None:
        for each in event.offsets:
            self._of(event.group_id, each.topic, each.partition, now, each.offset)

    def _of(self, group_id: str, topic: str, partition: int, now: Millis, offset: int) -> None:
        commits = self._groups.setdefault(group_id, {}).setdefault(TopicPartition(topic, partition), _Commits())
        commits.times.append(now)
        commits.offsets.append(offset)

    def of_group(self, group_id: str) -> dict[TopicPartition, _Commits]:
        """The partitions that a group has committed an offset of, in the order of their first."""
        return self._groups.get(group_id, {})

    def between(self, group_id: str, first: Millis, last: Millis) -> list[list[Any]]:
        """The commits between two instants: instant, topic, partition, offset."""
        found = [
            [at, topic, index, commits.offsets[number]]
            for (topic, index), commits in self.of_group(group_id).items()
            for number, at in enumerate(commits.times)
            if first <= at <= last and commits.offsets[number] != _DELETED
        ]
        return found[:: 1 + len(found) // MOST_COMMITS]


class ShareProgress:
    """How far share groups came, by group and partition: records that are settled, and the start of the window."""

    def __init__(self) -> None:
        self._settled: dict[tuple[str, TopicPartition], _Commits] = {}
        self._starts: dict[tuple[str, TopicPartition], _Commits] = {}

    def on_event(self, event: SharePartitionEvent, now: Millis, accounting: ShareAccounting) -> None:
        """Take in an event that ``accounting`` has counted already."""
        key = event.group_id, TopicPartition(event.topic, event.partition)
        _note(self._settled.setdefault(key, _Commits()), now, accounting.settled(event.group_id, *key[1]))
        if isinstance(event, SharePartitionLoaded | ShareWindowMoved):
            _note(self._starts.setdefault(key, _Commits()), now, event.start_offset)

    def at(self, group_id: str, partition: TopicPartition, instant: Millis) -> tuple[int, int]:
        """Settled records and the start of the window in an instant; -1 each where nothing was loaded yet."""
        settled, start = (known.get((group_id, partition)) for known in (self._settled, self._starts))
        if settled is None or start is None:
            return _DELETED, _DELETED
        return settled.at(instant), start.at(instant)


def _note(history: _Commits, now: Millis, offset: int) -> None:
    """Add a value; of several of one instant the last counts."""
    if history.times and history.times[-1] == now:
        history.offsets[-1] = offset
    elif not history.offsets or history.offsets[-1] != offset:
        history.times.append(now)
        history.offsets.append(offset)


def lag_between(
    simulation: Simulation,
    history: CommitHistory,
    shared: ShareProgress,
    group_id: str,
    first: Millis,
    last: Millis,
    points: int,
) -> dict[str, Any]:
    """The lag of a group in evenly spaced instants, and its commits meanwhile.

    ``records`` are those that the group has not committed, or that a share group has neither accepted nor archived;
    ``oldest`` is the age in ms of the oldest of them. A partition without a commit counts from its beginning, or with
    ``reset: latest`` not at all.
    """
    points = max(2, min(points, MOST_POINTS))
    last = max(first + 1, min(last, simulation.world.now))
    instants = [first + (last - first) * number // (points - 1) for number in range(points)]
    group = simulation.scenario.groups[group_id]
    from_start, shares = group.reset == "earliest", is_share_group(group)
    commits = history.of_group(group_id)
    records, oldest = [0] * points, [0] * points
    for topic in _topics(simulation.scenario, group_id):
        if topic not in simulation.cluster.topics:
            continue
        deleted_at = simulation.cluster.topics[topic].deleted_at
        for index in range(len(simulation.cluster.topics[topic].partitions)):
            place = TopicPartition(topic, index)
            mine = commits.get(place)
            for number, at in enumerate(instants):
                if deleted_at is not None and at >= deleted_at:
                    break
                if shares:
                    offset, start = shared.at(group_id, place, at)
                else:
                    offset = start = mine.at(at) if mine is not None else _DELETED
                if offset == _DELETED:
                    if not from_start:
                        continue
                    offset = start = 0
                behind = simulation.log_ends.end(topic, index, at) - offset
                if behind > 0:
                    records[number] += behind
                    oldest[number] = max(oldest[number], at - simulation.log_ends.written_at(topic, index, start))
    return {"at": instants, "records": records, "oldest": oldest, "commits": history.between(group_id, first, last)}


def _topics(scenario: Scenario, group_id: str) -> tuple[str, ...]:
    """The topics whose records a group can read: share groups also read what producers write."""
    topics = scenario.topics_of(group_id)
    if is_share_group(scenario.groups[group_id]):
        return topics
    return tuple(name for name in topics if scenario.topics[name].records_per_second)
