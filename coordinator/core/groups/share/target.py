"""The target assignment of a share group, computed within a heartbeat once the assignment interval has passed.

Kafka: TargetAssignmentBuilder, GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.member_order import Known, assignor_order
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, ids_of
from rejoin.coordinator.core.groups.share.assignor import SIMPLE, Sharer, assign
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.records import target_epoch_record, target_record
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import copied_set_order, utf16_sorted


def compute_target(group: ShareGroup, topics: TopicsMetadata, changes: RecordChanges, now: Millis) -> None:
    """Compute the target for the group's epoch, and write what differs from the old one."""
    before = dict(group.targets)
    computed = assign(_sharers(group, topics), _assignable(group), group.subscription_type)
    for member_id, target in computed.items():
        if before.get(member_id) != target:
            changes.write(target_record(group.group_id, member_id, target))
    changes.assignor = SIMPLE
    changes.write(target_epoch_record(group.group_id, group.epoch, now))


def _sharers(group: ShareGroup, topics: TopicsMetadata) -> dict[str, Sharer]:
    ids: dict[frozenset[str], tuple[str, ...]] = {}
    sharers = {}
    # Kafka: a member that joins stands where it will be, unlike in consumer groups.
    known = Known(group.member_order.capacity)
    for member_id in assignor_order(group.members, known):
        names = group.members[member_id].metadata.topic_names
        topic_ids = ids.get(names)
        if topic_ids is None:
            topic_ids = ids[names] = tuple(ids_of(copied_set_order(utf16_sorted(names)), topics))
        sharers[member_id] = Sharer(topic_ids, group.targets.get(member_id, {}))
    return sharers


def _assignable(group: ShareGroup) -> PartitionsByTopicId:
    """The partitions whose state is initialised."""
    states = group.state_partitions
    return {} if states is None else {topic_id: state.partitions for topic_id, state in states.initialized.items()}


def lacks_initialized(group: ShareGroup, topics: TopicsMetadata) -> bool:
    """Whether other partitions of the subscribed topics are initialised than are in the target.

    Kafka: GroupMetadataManager.initializedAssignmentPending. A target with a partition that is no longer initialised
    differs for ever.
    """
    states = group.state_partitions
    if states is None or not group.members:
        return False
    nothing: frozenset[int] = frozenset()
    in_targets = group.in_targets()
    for topic_id in ids_of(group.topics, topics):
        state = states.initialized.get(topic_id)
        if in_targets.get(topic_id, nothing) != (nothing if state is None else state.partitions):
            return True
    return False
