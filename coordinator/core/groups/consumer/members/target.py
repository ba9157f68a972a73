"""The target assignment: what each member should have, computed by a server-side assignor within a request.

Nothing is scheduled: the first heartbeat after the assignment interval computes it. Kafka: TargetAssignmentBuilder,
GroupMetadataManager.maybeUpdateTargetAssignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer.assignors import (
    Assignments,
    AssignorMember,
    SubscriptionKind,
    assignors_of,
)
from rejoin.coordinator.core.groups.consumer.assignors.incremental import reassign
from rejoin.coordinator.core.groups.consumer.assignors.uniform import UniformAssignor, topic_order
from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata
from rejoin.coordinator.core.groups.consumer.model.records import target_epoch_record, target_record
from rejoin.coordinator.core.groups.consumer.model.subscriptions import add
from rejoin.coordinator.core.groups.consumer.model.target_index import SMALLEST_INDEXED, TargetIndex
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId, is_target_due
from rejoin.coordinator.core.groups.modern.member_order import Known, assignor_order
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, ids_of
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import hash_map_order

_NOTHING: Final[PartitionsByTopicId] = {}


def preferred_assignor(counts: Mapping[str, int]) -> str | None:
    """The assignor that most members ask for; of several the first in the order of Java's hash maps."""
    if not counts:
        return None
    return max(hash_map_order(list(counts)), key=lambda name: counts[name])


def preferred_with(
    counts: Mapping[str, int], before: ConsumerMemberMetadata, after: ConsumerMemberMetadata
) -> str | None:
    """The preferred assignor as a request counts it: without the member's old choice, and with the new one.

    Kafka: ConsumerGroup.computePreferredServerAssignor. A name that nothing was left of in between counts as first.
    """
    counted = dict(counts)
    was, now = before.server_assignor, after.server_assignor
    if was is not None:
        add(counted, was, -1)
    is_first = now is not None and now not in counted
    if now is not None:
        add(counted, now, 1)
    preferred = preferred_assignor(counted)
    if is_first and now is not None and preferred is not None and counted[now] == counted[preferred]:
        return now
    return preferred


class TargetAssignments:
    """Computes targets for one shard's groups."""

    def __init__(self, settings: Settings, topics: TopicsMetadata) -> None:
        self._topics = topics
        self.assignors = assignors_of(settings.group_consumer_assignors)

    @property
    def default(self) -> str:
        """The assignor of groups whose members ask for none."""
        return next(iter(self.assignors))

    def is_due(self, group: ConsumerGroup, interval_ms: int, now: Millis) -> bool:
        """Whether a new target is wanted, and may be computed now."""
        return is_target_due(group.epoch, group.assignment_epoch, group.assignment_at, interval_ms, now)

    def compute(
        self,
        group: ConsumerGroup,
        changes: Changes,
        assignor: str,
        kind: SubscriptionKind,
        now: Millis,
        known: Known,
        returned: str | None = None,
    ) -> None:
        """Compute the target for the group's epoch, and write what differs from the old one.

        That of a member that has returned is written in any case: its record so far says that it has none.
        """
        targets = group.targets
        index = group.target_index = self._index(group, assignor, kind, known)
        computed = self._all(group, assignor, kind, known) if index is None else _changed(index, returned)
        for member_id, given in computed.items():
            before = targets.get(member_id)
            if given == before and member_id != returned:
                continue
            target: PartitionsByTopicId = {
                topic_id: frozenset(partitions) for topic_id, partitions in given.items() if partitions
            }
            if member_id == returned or before != target:
                changes.write(target_record(group.group_id, member_id, target))
        changes.assignor = assignor
        changes.write(target_epoch_record(group.group_id, group.epoch, now))

    def _all(self, group: ConsumerGroup, assignor: str, kind: SubscriptionKind, known: Known) -> Assignments:
        """The new targets of all members."""
        topics, targets = self._topics, group.targets
        ids: dict[tuple[frozenset[str], str], tuple[tuple[str, ...], int]] = {}
        subscriptions = group.subscriptions
        members: dict[str, AssignorMember] = {}
        for member_id in assignor_order(group.members, known):
            metadata = group.members[member_id].metadata
            subscription = metadata.topic_names, metadata.topic_regex
            known_ids = ids.get(subscription)
            if known_ids is None:
                names = subscriptions.ordered_topics_of(metadata)
                known_ids = ids[subscription] = tuple(ids_of(names, topics)), len(names)
            topic_ids, name_count = known_ids
            target_before = targets.get(member_id, _NOTHING)
            members[member_id] = AssignorMember(
                metadata.instance_id, metadata.rack_id, topic_ids, target_before, name_count
            )
        subscribed = dict.fromkeys(topic_id for topic_ids, _ in ids.values() for topic_id in topic_ids)
        computed = self.assignors[assignor].assign(members, self._counts(subscribed), kind)
        return {member_id: computed.get(member_id, _NOTHING) for member_id in members}

    def _index(self, group: ConsumerGroup, assignor: str, kind: SubscriptionKind, known: Known) -> TargetIndex | None:
        """The index of the group's targets as they are now, where one pays: in a large group that changes a little."""
        members, targets, subscriptions = group.members, group.targets, group.subscriptions
        if (
            len(members) < SMALLEST_INDEXED
            or len(members) > 2 * len(targets)
            or type(self.assignors[assignor]) is not UniformAssignor
            or kind is not SubscriptionKind.HOMOGENEOUS
            or subscriptions.type_for(len(members)) is not kind
        ):
            return None
        metadata = next(iter(members.values())).metadata
        names = subscriptions.ordered_topics_of(metadata)
        counts = self._counts(topic_order(tuple(ids_of(names, self._topics)), len(names)))
        index = group.target_index
        is_known = index is not None and index.topics == counts and [*index.topics] == [*counts]
        if index is not None and is_known and index.refresh(members, targets, known):
            return index
        return TargetIndex.of(counts, members, targets, known)

    def _counts(self, topic_ids: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has."""
        return {topic_id: self._topics.partition_count(self._topics.named(topic_id) or "") for topic_id in topic_ids}


def _changed(index: TargetIndex, returned: str | None) -> Assignments:
    """The new targets of the members whose targets change, and of those that have no record of one."""
    changed = reassign(index)
    named = index.in_order({**changed, **index.without_target, **({} if returned is None else {returned: None})})
    return {member_id: changed.get(member_id, index.target_of(member_id)) for member_id in named}
