"""The target assignment: what each member should have, computed by a server-side assignor within a request.

Nothing is scheduled: the first heartbeat after the assignment interval computes it. Kafka: TargetAssignmentBuilder,
GroupMetadataManager.maybeUpdateTargetAssignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer.assignors import AssignorMember, SubscriptionKind, assignors_of
from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata, Partitions
from rejoin.coordinator.core.groups.consumer.model.metadata import TopicsMetadata, ids_of
from rejoin.coordinator.core.groups.consumer.model.records import target_epoch_record, target_record
from rejoin.coordinator.core.groups.consumer.model.subscriptions import add
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import hash_map_order

_NOTHING: Final[Partitions] = {}


def preferred_assignor(counts: Mapping[str, int]) -> str | None:
    """The assignor that most members ask for; of several the first in the order of Java's hash maps."""
    if not counts:
        return None
    return max(hash_map_order(list(counts)), key=lambda name: counts[name])


def preferred_with(
    counts: Mapping[str, int], before: ConsumerMemberMetadata, after: ConsumerMemberMetadata
) -> str | None:
    """The same as a request counts it: the member's old wish is taken out, and the new one is put in.

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
        if group.assignment_epoch >= group.epoch:
            return False
        return group.assignment_at == 0 or interval_ms == 0 or now >= group.assignment_at + interval_ms

    def compute(
        self,
        group: ConsumerGroup,
        changes: Changes,
        assignor: str,
        kind: SubscriptionKind,
        now: Millis,
        newcomer: str | None = None,
    ) -> None:
        """Compute the target for the group's epoch, and write what differs from the old one.

        That of the newcomer is written in any case: its record so far says that it has none.
        """
        topics, targets = self._topics, group.targets
        ids: dict[frozenset[str], tuple[str, ...]] = {}
        subscriptions = group.subscriptions
        members: dict[str, AssignorMember] = {}
        # Kafka: TargetAssignmentBuilder gives the assignor a hash map of the members.
        for member_id in hash_map_order(list(group.members)):
            member = group.members[member_id]
            metadata = member.metadata
            names = frozenset(subscriptions.topics_of(metadata))
            topic_ids = ids.get(names)
            if topic_ids is None:
                topic_ids = ids[names] = tuple(ids_of(sorted(names), topics))
            target_before = targets.get(member_id, _NOTHING)
            members[member_id] = AssignorMember(metadata.instance_id, metadata.rack_id, topic_ids, target_before)
        computed = self.assignors[assignor].assign(members, self._counts(ids.values()), kind)
        for member_id in members:
            given, before = computed.get(member_id, _NOTHING), targets.get(member_id)
            if given == before and member_id != newcomer:
                continue
            target: Partitions = {
                topic_id: frozenset(partitions) for topic_id, partitions in given.items() if partitions
            }
            if member_id == newcomer or before != target:
                changes.write(target_record(group.group_id, member_id, target))
        changes.assignor = assignor
        changes.write(target_epoch_record(group.group_id, group.epoch, now))

    def _counts(self, subscribed: Iterable[tuple[str, ...]]) -> dict[str, int]:
        """How many partitions each subscribed topic has."""
        known = dict.fromkeys(topic_id for topic_ids in subscribed for topic_id in topic_ids)
        return {topic_id: self._topics.partition_count(self._topics.named(topic_id) or "") for topic_id in known}
