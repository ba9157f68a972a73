"""How far the groups of a run are behind the logs that they read: their commits, and their lag in any instant."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import OffsetsCommitted, OffsetsDeleted, TransactionEnded
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.simulation import Simulation

COMMIT_EVENTS: Final = (OffsetsCommitted, OffsetsDeleted, TransactionEnded)
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


def lag_between(
    simulation: Simulation, history: CommitHistory, group_id: str, first: Millis, last: Millis, points: int
) -> dict[str, Any]:
    """The lag of a group in evenly spaced instants, and its commits meanwhile.

    ``records`` are those that the group has not committed, ``oldest`` is the age in ms of the oldest of them. A
    partition without a commit counts from its beginning, or with ``reset: latest`` not at all.
    """
    points = max(2, min(points, MOST_POINTS))
    last = max(first + 1, min(last, simulation.world.now))
    instants = [first + (last - first) * number // (points - 1) for number in range(points)]
    logs = [log for name, log in simulation.cluster.topics.items() if name in _topics(simulation.scenario, group_id)]
    from_start = simulation.scenario.groups[group_id].reset == "earliest"
    commits = history.of_group(group_id)
    records, oldest = [0] * points, [0] * points
    for log in logs:
        for index in range(len(log.partitions)):
            mine = commits.get(TopicPartition(log.name, index))
            for number, at in enumerate(instants):
                offset = mine.at(at) if mine is not None else _DELETED
                if offset == _DELETED:
                    if not from_start:
                        continue
                    offset = 0
                behind = log.end(index, at) - offset
                if behind > 0:
                    records[number] += behind
                    oldest[number] = max(oldest[number], at - log.written_at(index, offset))
    return {"at": instants, "records": records, "oldest": oldest, "commits": history.between(group_id, first, last)}


def _topics(scenario: Scenario, group_id: str) -> tuple[str, ...]:
    return tuple(name for name in scenario.topics_of(group_id) if scenario.topics[name].records_per_second)
