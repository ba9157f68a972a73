"""The share-partitions of a group: whose state is being made, is there, or is being deleted (key 15). Never changed.

Kafka: GroupMetadataManager.ShareGroupStatePartitionMetadataInfo.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Millis

UNKNOWN_TOPIC: Final = "<UNKNOWN>"
"""The name that Kafka writes for a topic that is gone."""


class PartitionsInState(NamedTuple):
    """Partitions of one topic in one state."""

    name: str
    partitions: frozenset[int]
    since: Millis = 0
    """When the record of it was replayed."""


StateTopics: TypeAlias = Mapping[str, PartitionsInState]
"""By topic id."""


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The share-partitions of one group."""

    initializing: StateTopics = field(default_factory=dict)
    initialized: StateTopics = field(default_factory=dict)
    deleting: Mapping[str, str] = field(default_factory=dict)
    """The names of topics whose state is being deleted, by their ids."""

    def begin(self, topics: StateTopics) -> StatePartitions:
        """Partitions are being initialised, and are no longer being deleted."""
        left = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return replace(self, initializing=_merged(self.initializing, topics), deleting=left)

    def end(self, topics: StateTopics) -> StatePartitions:
        """Partitions are initialised."""
        return replace(
            self, initializing=_without(self.initializing, topics), initialized=_merged(self.initialized, topics)
        )

    def give_up(self, topics: StateTopics) -> StatePartitions:
        """Partitions could not be initialised."""
        return replace(self, initializing=_without(self.initializing, topics))

    def begin_deletion(self, topics: Mapping[str, str]) -> StatePartitions:
        """The state of whole topics is being deleted: their names by their ids."""
        return StatePartitions(
            _other(self.initializing, topics), _other(self.initialized, topics), {**self.deleting, **topics}
        )

    def end_deletion(self, topic_ids: Collection[str]) -> StatePartitions:
        """The state of topics is deleted."""
        left = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids}
        return replace(self, deleting=left)

    def without(self, topic_ids: Collection[str]) -> StatePartitions:
        """StateTopics are gone."""
        return StatePartitions(
            _other(self.initializing, topic_ids), _other(self.initialized, topic_ids), {}
        ).begin_deletion({topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids})

    def names(self, topic_ids: Collection[str]) -> bool:
        """Whether any of these topics is in it."""
        return any(
            topic_id in topics
            for topics in (self.initializing, self.initialized, self.deleting)
            for topic_id in topic_ids
        )


def _other(topics: StateTopics, topic_ids: Collection[str]) -> StateTopics:
    return {topic_id: state for topic_id, state in topics.items() if topic_id not in topic_ids}


def _merged(one: StateTopics, other: StateTopics) -> StateTopics:
    merged = dict(one)
    for topic_id, state in other.items():
        known = merged.get(topic_id)
        merged[topic_id] = state if known is None else state._replace(partitions=known.partitions | state.partitions)
    return merged


def _without(one: StateTopics, other: StateTopics) -> StateTopics:
    left = dict(one)
    for topic_id, state in other.items():
        known = left.pop(topic_id, None)
        if known is not None and known.partitions - state.partitions:
            left[topic_id] = known._replace(partitions=known.partitions - state.partitions)
    return left
