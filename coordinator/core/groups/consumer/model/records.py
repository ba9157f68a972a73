"""Conversions between the state of a consumer group and its records, in both directions.

Kafka: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Final

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    RELEASED,
    ClassicMetadata,
    ConsumerMemberMetadata,
    CurrentAssignment,
    PartitionEpochs,
    SupportedProtocol,
)
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerMemberState
from rejoin.coordinator.core.groups.consumer.model.subscriptions import ResolvedRegex
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.records import PartRecords, assignment_epoch
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.records.groups import consumer_groups as stored
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataRecord,
    ConsumerGroupMetadataValue,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionRecord,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberRecord,
    ConsumerGroupTargetAssignmentMetadataRecord,
    CurrentTopicPartitions,
)
from rejoin.protocol.records.groups.group_parts import TargetPartitions, topic_partitions

PARTS: Final = PartRecords(
    epoch=ConsumerGroupMetadataRecord,
    member=ConsumerGroupMemberMetadataRecord,
    target_epoch=ConsumerGroupTargetAssignmentMetadataRecord,
    target=ConsumerGroupTargetAssignmentMemberRecord,
    current=ConsumerGroupCurrentMemberAssignmentRecord,
)

# --- to records


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> ConsumerGroupMetadataRecord:
    """The group's epoch."""
    return ConsumerGroupMetadataRecord.of(
        group_id, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    )


def metadata_record(
    group_id: str, member_id: str, metadata: ConsumerMemberMetadata
) -> ConsumerGroupMemberMetadataRecord:
    """A member as it describes itself."""
    classic = metadata.classic
    return ConsumerGroupMemberMetadataRecord.of(
        group_id,
        member_id,
        ConsumerGroupMemberMetadataValue(
            instance_id=metadata.instance_id,
            rack_id=metadata.rack_id,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            subscribed_topic_names=tuple(utf16_sorted(metadata.topic_names)),
            subscribed_topic_regex=metadata.topic_regex,
            rebalance_timeout_ms=metadata.rebalance_timeout_ms,
            server_assignor=metadata.server_assignor,
            classic_member_metadata=None
            if classic is None
            else stored.ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=tuple(
                    stored.ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
                ),
            ),
        ),
    )


def target_epoch_record(group_id: str, epoch: int, at: Millis) -> ConsumerGroupTargetAssignmentMetadataRecord:
    """The epoch of the target, and when it was computed."""
    return ConsumerGroupTargetAssignmentMetadataRecord.of(group_id, assignment_epoch(epoch, at))


def target_record(
    group_id: str, member_id: str, target: PartitionsByTopicId
) -> ConsumerGroupTargetAssignmentMemberRecord:
    """Record of a member's target assignment."""
    topics = topic_partitions({topic_id: partitions for topic_id, partitions in target.items() if partitions})
    value = TargetPartitions(topic_partitions=topics)
    return ConsumerGroupTargetAssignmentMemberRecord.of(group_id, member_id, value)


def current_record(
    group_id: str, member_id: str, current: CurrentAssignment
) -> ConsumerGroupCurrentMemberAssignmentRecord:
    """Record of a member's current assignment."""
    return ConsumerGroupCurrentMemberAssignmentRecord.of(
        group_id,
        member_id,
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=int(current.state),
            assigned_partitions=_current_topics(current.assigned),
            partitions_pending_revocation=_current_topics(current.pending),
        ),
    )


def _current_topics(owned: PartitionEpochs) -> tuple[CurrentTopicPartitions, ...]:
    topics = []
    for topic_id, epochs in owned.items():
        partitions = tuple(sorted(epochs))
        at = tuple(epochs[partition] for partition in partitions)
        topics.append(CurrentTopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=at))
    return tuple(topics)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> ConsumerGroupRegularExpressionRecord:
    """The topics of an expression."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(utf16_sorted(resolved.topics)), version=resolved.version, timestamp=resolved.resolved_at
    )
    return stored.regular_expression_record(group_id, regex, value)


def group_records(group: ConsumerGroup) -> list[ConsumerGroupRecord]:
    """Everything that a group has in the log, but for what Kafka 4.0 wrote of its topics, which is not kept."""
    group_id, members = group.group_id, group.members.values()
    records: list[ConsumerGroupRecord] = []
    # A compacted log may have one record of a member and not yet the other.
    records += [
        metadata_record(group_id, each.member_id, each.metadata)
        for each in members
        if each.metadata is not NEW_METADATA
    ]
    records += [regex_record(group_id, regex, found) for regex, found in group.subscriptions.resolved.items()]
    records.append(epoch_record(group_id, group.epoch, group.metadata_hash))
    records += [target_record(group_id, member_id, target) for member_id, target in group.targets.items()]
    if group.targets or group.assignment_epoch > group.rules.first_epoch:
        records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_at))
    records += [
        current_record(group_id, each.member_id, each.current)
        for each in members
        if each.current is not NEW_ASSIGNMENT and each.current is not RELEASED
    ]
    return records


def group_tombstones(group: ConsumerGroup) -> list[ConsumerGroupRecord]:
    """The end of everything that a group has in the log."""
    group_id, members = group.group_id, list(group.members)
    records: list[ConsumerGroupRecord] = []
    records += [ConsumerGroupCurrentMemberAssignmentRecord.of(group_id, member_id, None) for member_id in members]
    records += [ConsumerGroupTargetAssignmentMemberRecord.of(group_id, member_id, None) for member_id in members]
    records.append(ConsumerGroupTargetAssignmentMetadataRecord.of(group_id, None))
    records += [ConsumerGroupMemberMetadataRecord.of(group_id, member_id, None) for member_id in members]
    records += [stored.regular_expression_record(group_id, regex, None) for regex in group.subscriptions.resolved]
    # Kafka: ConsumerGroup.createConsumerGroupTombstoneRecords writes this one whether 4.0 was there or not.
    records.append(stored.ConsumerGroupPartitionMetadataRecord.of(group_id, None))
    records.append(ConsumerGroupMetadataRecord.of(group_id, None))
    return records


# --- from records


def metadata_of(value: ConsumerGroupMemberMetadataValue) -> ConsumerMemberMetadata:
    """A member as its record describes it."""
    classic = value.classic_member_metadata
    return ConsumerMemberMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex or "",
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple(SupportedProtocol(each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )


def current_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A member's current assignment, from its record."""
    return CurrentAssignment(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=ConsumerMemberState.of(value.state),
        assigned=_partition_epochs(value.assigned_partitions, value.member_epoch),
        pending=_partition_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _partition_epochs(topics: Iterable[CurrentTopicPartitions], member_epoch: int) -> PartitionEpochs:
    # Kafka: records of before 4.3 have no epochs; the member's own counts, or 0 while it is away.
    otherwise = max(member_epoch, 0)
    return {
        topic.topic_id: dict(zip_longest(topic.partitions, topic.assignment_epochs or (), fillvalue=otherwise))
        for topic in topics
    }


def resolved_of(value: ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    """The topics that a regular expression matches, from its record."""
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
