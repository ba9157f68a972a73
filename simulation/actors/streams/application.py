"""An application as all of its instances know it: the topology, its internal topics, and its changelogs.

Changelogs are counted and not written: a task's changelog is the number of updates of its state. Records of repartition
topics are counted by partition, with the instants at which they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rejoin.client.core.group.streams.tasks import StreamsTasks, TaskId
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsTopology
from rejoin.protocol.streams.topology import CopartitionGroup, StreamsKeyValue, StreamsTopicInfo, Subtopology
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.kernel import Millis

_REPARTITION_CONFIGS: Final = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "retention.ms": "-1"}
_CHANGELOG_CONFIGS: Final = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


@dataclass(frozen=True, slots=True)
class StoreCode:
    """A store of each task of a subtopology. ``restore_ms`` is the time for one record of its changelog."""

    name: str
    restore_ms: float = 0.02
    keys: int = 0
    """Keys per task, which bound its changelog after compaction; 0: each update has a key of its own."""
    records: int = 0
    """Records that each task's changelog has at the start of the run."""


@dataclass(frozen=True, slots=True)
class SubtopologyCode:
    """A part of the topology: the topics it reads, repartition topics among them, those it writes, and its stores."""

    subtopology_id: str
    sources: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """Repartition topics, by their full names."""
    writes: tuple[str, ...] = ()
    stores: tuple[StoreCode, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        return (*self.sources, *self.reads)

    @property
    def restore_ms(self) -> float:
        """Time for one update of each store."""
        return sum(store.restore_ms for store in self.stores)


@dataclass(frozen=True, slots=True)
class ApplicationCode:
    """The application's code and settings."""

    application_id: str
    subtopologies: tuple[SubtopologyCode, ...]
    threads: int = 1
    standby_replicas: int = 0
    exactly_once: bool = False
    commit_interval_ms: Millis = 30_000
    probing_interval_ms: Millis = 600_000
    keeps_state: bool = True
    """Whether an instance that starts again has its state directory of before."""

    def part(self, subtopology_id: str) -> SubtopologyCode:
        return next(each for each in self.subtopologies if each.subtopology_id == subtopology_id)

    @property
    def source_topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for each in self.subtopologies for topic in each.sources))

    @property
    def repartition_topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for each in self.subtopologies for topic in each.reads))

    @property
    def changelog_topics(self) -> tuple[str, ...]:
        return tuple(
            changelog_topic(self.application_id, store.name) for each in self.subtopologies for store in each.stores
        )

    def topology(self) -> StreamsTopology:
        """The topology as members send it."""
        return StreamsTopology(epoch=0, subtopologies=tuple(map(self._subtopology, self.subtopologies)))

    def _subtopology(self, part: SubtopologyCode) -> Subtopology:
        together = CopartitionGroup(
            source_topics=tuple(range(len(part.sources))),
            source_topic_regex=(),
            repartition_source_topics=tuple(range(len(part.reads))),
        )
        return Subtopology(
            subtopology_id=part.subtopology_id,
            source_topics=part.sources,
            source_topic_regex=(),
            state_changelog_topics=tuple(
                _internal(changelog_topic(self.application_id, store.name), _CHANGELOG_CONFIGS) for store in part.stores
            ),
            repartition_sink_topics=part.writes,
            repartition_source_topics=tuple(_internal(topic, _REPARTITION_CONFIGS) for topic in part.reads),
            copartition_groups=(together,) if len(part.topics) > 1 else (),
        )


def _internal(name: str, configs: dict[str, str]) -> StreamsTopicInfo:
    settings = tuple(StreamsKeyValue(key=key, value=value) for key, value in configs.items())
    return StreamsTopicInfo(name=name, partitions=0, replication_factor=-1, topic_configs=settings)


def repartition_topic(application_id: str, name: str) -> str:
    return f"{application_id}-{name}-repartition"


def changelog_topic(application_id: str, store: str) -> str:
    return f"{application_id}-{store}-changelog"


@dataclass(slots=True)
class ClassicPlan:
    """The standby and warm-up tasks of an application's threads, as its last leader decided, by client id."""

    standby: dict[str, StreamsTasks] = field(default_factory=dict)
    prober: str | None = None
    """The leader that has to look again whether warm-up tasks have caught up."""


@dataclass(slots=True)
class Application:
    """One application in a run: its code, and how long the changelog of each task is."""

    code: ApplicationCode
    plan: ClassicPlan = field(default_factory=ClassicPlan)
    _ends: dict[TaskId, int] = field(default_factory=dict)

    def is_stateful(self, task: TaskId) -> bool:
        return bool(self.code.part(task.subtopology).stores)

    def end(self, task: TaskId) -> int:
        """Updates of the state of a task so far."""
        found = self._ends.get(task)
        if found is None:
            stores = self.code.part(task.subtopology).stores
            found = self._ends[task] = max((store.records for store in stores), default=0)
        return found

    def append(self, task: TaskId, updates: int) -> None:
        self._ends[task] = self.end(task) + updates

    def missing(self, task: TaskId, position: int) -> int:
        """Updates that have to be read of the changelog by a state that is at a position. Compaction removes others."""
        behind = self.end(task) - position
        kept = [store.keys for store in self.code.part(task.subtopology).stores]
        return min(behind, max(kept)) if kept and all(kept) else behind

    def changelogs_of(self, task: TaskId) -> int:
        """The number of changelog partitions of a task."""
        return len(self.code.part(task.subtopology).stores)

    def tasks_reading(self, partition: TopicPartition) -> Iterator[TaskId]:
        """The task that reads a partition."""
        for part in self.code.subtopologies:
            if partition.topic in part.topics:
                yield TaskId(part.subtopology_id, partition.partition)
