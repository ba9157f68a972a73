"""Configuration of a topology: partitions of its internal topics, its tasks, and topics that are missing or wrong.

The cost grows with the size of the topology alone, whatever is in it.

Kafka: InternalTopicManager, ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.streams.topology.configured import ConfiguredTopology, MissingTopic
from rejoin.coordinator.core.groups.streams.topology.copartitioning import Copartitioning, copartitioned
from rejoin.coordinator.core.groups.streams.topology.problems import (
    InvalidTopologyError,
    WrongPartitionsError,
    some_of,
)
from rejoin.coordinator.core.groups.streams.topology.repartition_topics import repartition_counts
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import hash_map_order, utf16_sorted
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from rejoin.protocol.records.groups.streams_groups import StreamsGroupTopologyValue
from rejoin.protocol.streams.topology import StreamsTopicInfo, Subtopology

MOST_NAMED: Final = 3
"""So many topics that are missing a status names."""

MOST_TASKS: Final = 100_000
"""Tasks of all subtopologies together."""
# Differs: Kafka has no bound. A topic may have as many partitions here.


def configure(topology: StreamsGroupTopologyValue, topics: TopicsMetadata) -> ConfiguredTopology | ErrorCode:
    """The topology beside the topics that are there, or the error of one that cannot run."""
    by_id = {each.subtopology_id: each for each in topology.subtopologies}
    subtopologies = [by_id[each] for each in hash_map_order([*by_id])]
    epoch = topology.epoch
    try:
        groups = copartitioned(subtopologies)
        missing = {name for each in subtopologies for name in each.source_topics if name not in topics}
        if missing:
            detail = f"Source topics are missing: {some_of(utf16_sorted(missing), MOST_NAMED)}."
            return ConfiguredTopology(epoch, StreamsStatus.MISSING_SOURCE_TOPICS, detail)
        configuration = _Configuration(subtopologies, topics, groups)
        internal = configuration.internal_topics()
    except InvalidTopologyError as problem:
        return problem.error
    except WrongPartitionsError as problem:
        return ConfiguredTopology(epoch, StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, str(problem))
    for name in _required(subtopologies):
        # Kafka: the first one that is found is named alone.
        if name in internal and name in topics and topics.partition_count(name) != internal[name].partitions:
            has, needs = topics.partition_count(name), internal[name].partitions
            detail = f"Topic {name} has {has} partitions and needs {needs}."
            return ConfiguredTopology(epoch, StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)
    partitions = {name: each.partitions for name, each in internal.items()}
    # Kafka: topics that exist are taken out of the table of all, which stays as large as it was.
    to_create = {name: internal[name] for name in hash_map_order([*internal]) if name not in topics}
    if to_create:
        detail = f"Internal topics are missing: {some_of([*to_create], MOST_NAMED)}."
        status = StreamsStatus.MISSING_INTERNAL_TOPICS
        return ConfiguredTopology(epoch, status, detail, configuration.tasks, partitions, to_create)
    return ConfiguredTopology(epoch, tasks=configuration.tasks, partitions=partitions)


def _required(subtopologies: Sequence[Subtopology]) -> list[str]:
    """The topics without which a topology cannot run, in Kafka's order."""
    names = (name for each in subtopologies for name in (*each.source_topics, *(info.name for info in _internal(each))))
    return hash_map_order([*dict.fromkeys(names)])


def _internal(subtopology: Subtopology) -> tuple[StreamsTopicInfo, ...]:
    return (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics)


class _Configuration:
    """The numbers of partitions and tasks of a topology whose source topics are all there."""

    def __init__(
        self, subtopologies: Sequence[Subtopology], topics: TopicsMetadata, groups: Sequence[Sequence[str]]
    ) -> None:
        self._subtopologies = subtopologies
        self._topics = topics
        given = {
            info.name: info.partitions
            for each in subtopologies
            for info in each.repartition_source_topics
            if info.partitions
        }
        self._decided = repartition_counts(subtopologies, topics, given)
        copartitioning = Copartitioning(subtopologies, given, self._decided, self._count)
        for names in groups:
            copartitioning.enforce(names)
        counts = {each.subtopology_id: self._largest(each) for each in subtopologies}
        for each in subtopologies:
            changelogs = (info.name for info in each.state_changelog_topics)
            self._decided.update(dict.fromkeys(changelogs, counts[each.subtopology_id]))
        self.tasks = {each.subtopology_id: self._largest(each) for each in subtopologies}
        """By subtopology."""
        if sum(self.tasks.values()) > MOST_TASKS:
            raise InvalidTopologyError

    def _count(self, name: str) -> int:
        """Kafka: a topic that exists counts as it is, also an internal one."""
        return self._topics.partition_count(name) or self._decided[name]

    def _largest(self, subtopology: Subtopology) -> int:
        """The largest number of partitions of what a subtopology reads."""
        names = (*subtopology.source_topics, *(info.name for info in subtopology.repartition_source_topics))
        if not names:
            raise InvalidTopologyError
        return max(map(self._count, names))

    def internal_topics(self) -> dict[str, MissingTopic]:
        """Each internal topic as it should be, by name."""
        by_id = {each.subtopology_id: each for each in self._subtopologies}
        found = {}
        for subtopology in (by_id[each] for each in utf16_sorted(by_id)):
            for infos in (subtopology.repartition_source_topics, subtopology.state_changelog_topics):
                by_name = {info.name: info for info in infos}
                if len(by_name) < len(infos) or any(map(_has_setting_twice, infos)):
                    # Kafka: no table can be made of them, which is not caught.
                    raise InvalidTopologyError(ErrorCode.UNKNOWN_SERVER_ERROR)
                for name in hash_map_order([*by_name]):
                    info = by_name[name]
                    found[name] = MissingTopic(info.partitions or self._decided[name], info)
        return found


def _has_setting_twice(info: StreamsTopicInfo) -> bool:
    return len({each.key for each in info.topic_configs}) < len(info.topic_configs)
