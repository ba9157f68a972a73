"""Groups that change their kind while their members run: a classic group becomes a consumer group, and back.

The records of a downgrade are not replayed: the group is swapped in memory, with what undoes that.
Kafka: GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rejoin.coordinator.core.groups.classic.group import CLASSIC, ClassicGroup
from rejoin.coordinator.core.groups.classic.groups import ClassicGroups
from rejoin.coordinator.core.groups.classic.member import Member as ClassicMember
from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    CurrentAssignment,
    SupportedProtocol,
)
from rejoin.coordinator.core.groups.consumer.model.records import (
    current_record,
    epoch_record,
    group_tombstones,
    metadata_record,
    target_epoch_record,
    target_record,
)
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.member_order import Known, filled_order, timeline_order
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, embedded_assignment, metadata_hash
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import ConversionRefusal, ConversionRefused, GroupConverted
from rejoin.journal.events.coordinator import Cause, GroupType
from rejoin.protocol.embedded.consumer_protocol import decode_assignment, decode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol
from rejoin.protocol.records.consumer_offsets import group_record
from rejoin.protocol.types import TopicPartition

UPGRADES: Final = ("bidirectional", "upgrade")
DOWNGRADES: Final = ("bidirectional", "downgrade")


class Migration:
    """Converts the groups of one shard, as far as the policy allows it."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        classic: ClassicGroups,
        timers: MemberTimers,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._classic = classic
        self._timers = timers

    # --- upgrade

    def upgrade(self, group: ClassicGroup, member_id: str, changes: Changes) -> ConsumerGroup | ErrorCode:
        """Convert a classic group with members to a consumer group; each member keeps its partitions."""
        group_id = group.group_id
        forbidden = self._forbidden_upgrade(group)
        if forbidden is not None:
            self.refused(group_id, CONSUMER, member_id, forbidden)
            return ErrorCode.GROUP_ID_NOT_FOUND
        # Kafka: those that wait are answered before it is known whether the group can be converted.
        self._classic.answer_parked(group, ErrorCode.REBALANCE_IN_PROGRESS)
        lacking = [each for each in group.members.values() if group.protocol_name not in each.protocol_names()]
        if lacking:
            # Kafka: a group that has not chosen a protocol that all members support ends in an exception. One whose
            # members have all left its join phase has no member to look at.
            culprit = lacking[0].member_id if group.protocol_name is not None else None
            self.refused(group_id, CONSUMER, member_id, "no-protocol", culprit)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        converted = self._converted(group, group.protocol_name or "", member_id)
        if converted is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        self._write_upgrade(group, converted, changes)
        changes.upgraded_from = group.generation
        changes.events.append(
            GroupConverted(
                group_id=group_id,
                group_type=CONSUMER,
                generation=group.generation,
                member_id=member_id,
                members=list(group.members),
            )
        )
        made = self._groups[group.group_id]
        assert isinstance(made, ConsumerGroup), "the records of an upgrade make a consumer group"
        for each, member in made.members.items():
            self._timers.restart_session(member, group.members[each].session_timeout_ms)
        return made

    def _write_upgrade(
        self,
        group: ClassicGroup,
        converted: Mapping[str, tuple[ConsumerMemberMetadata, PartitionsByTopicId]],
        changes: Changes,
    ) -> None:
        group_id, generation = group.group_id, group.generation
        names = dict.fromkeys(name for metadata, _ in converted.values() for name in metadata.topic_names)
        changes.write(group_record(group_id, None))
        changes.write(*(metadata_record(group_id, each, metadata) for each, (metadata, _) in converted.items()))
        changes.write(epoch_record(group_id, generation, metadata_hash(names, self._topics)))
        changes.write(*(target_record(group_id, each, target) for each, (_, target) in converted.items()))
        changes.write(target_epoch_record(group_id, generation, 0))
        for member_id, (_, target) in converted.items():
            current = CurrentAssignment(
                epoch=generation,
                previous_epoch=generation,
                assigned={topic_id: dict.fromkeys(sorted(each), generation) for topic_id, each in target.items()},
            )
            changes.write(current_record(group_id, member_id, current))

    def _forbidden_upgrade(self, group: ClassicGroup) -> ConversionRefusal | None:
        settings = self._ctx.settings
        if settings.group_consumer_migration_policy not in UPGRADES:
            return "policy"
        if not group.uses_consumer_protocol:
            return "protocol-type"
        return "size" if len(group.members) > settings.group_consumer_max_size else None

    def refused(
        self,
        group_id: str,
        group_type: GroupType,
        member_id: str,
        reason: ConversionRefusal,
        culprit: str | None = None,
    ) -> None:
        """Report that a group keeps its protocol though a member asked for another."""
        self._ctx.emit(
            ConversionRefused(
                group_id=group_id, group_type=group_type, member_id=member_id, reason=reason, culprit=culprit
            )
        )

    def _converted(
        self, group: ClassicGroup, protocol: str, joining: str
    ) -> dict[str, tuple[ConsumerMemberMetadata, PartitionsByTopicId]] | None:
        """Each member as one of a consumer group, with its partitions; none if they are unreadable or would be lost."""
        converted = {}
        members = list(group.members)
        if group.member_order == "hashmap":
            # Kafka: ConsumerGroup.fromClassicGroup, createConsumerGroupRecords: by way of a group that is not kept.
            members = filled_order([each.member_id for each in group.ordered_members()])
        for member in map(group.members.__getitem__, members):
            try:
                subscription = decode_subscription(member.metadata_for(protocol))
                assignment = decode_assignment(member.assignment) if member.assignment else None
            except ValueError:
                self.refused(group.group_id, CONSUMER, joining, "unreadable", member.member_id)
                return None
            if assignment is not None and assignment.user_data:
                # Kafka: an assignor of the users' own would lose what it handed out.
                self.refused(group.group_id, CONSUMER, joining, "user-data", member.member_id)
                return None
            metadata = ConsumerMemberMetadata(
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                topic_names=frozenset(subscription.topics),
                classic=ClassicMetadata(
                    member.session_timeout_ms,
                    tuple(SupportedProtocol(each.name, each.metadata) for each in member.protocols),
                ),
            )
            partitions = () if assignment is None else assignment.partitions
            converted[member.member_id] = (metadata, self._by_topic_id(partitions))
        return converted

    def _by_topic_id(self, partitions: Sequence[TopicPartition]) -> PartitionsByTopicId:
        found: dict[str, set[int]] = {}
        for topic, partition in partitions:
            if topic in self._topics:
                found.setdefault(self._topics.id_of(topic), set()).add(partition)
        return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}

    # --- downgrade

    def downgrade(self, group: ConsumerGroup, leaving: Sequence[str], changes: Changes) -> bool:
        """Make a classic group of those that are left when the last modern members go, and let it rebalance."""
        left = len(group.members) - len(leaving)
        if not left or not group.are_all_classic_without(leaving):
            return False
        if not self.may_downgrade(left):
            is_forbidden = self._ctx.settings.group_consumer_migration_policy not in DOWNGRADES
            self.refused(group.group_id, CLASSIC, leaving[0], "policy" if is_forbidden else "size")
            return False
        classic = self._classic_group(group, leaving, None, group.epoch)
        # The rebalance begins at once, and not when the records are stored: so that they left is said before.
        for event in changes.events:
            self._ctx.emit(event)
        changes.events.clear()
        self._swap(group, classic, leaving[0], changes)
        self._classic.adopt(classic, Cause(cause="downgrade", member_id=leaving[0]))
        return True

    def downgrade_with(self, group: ConsumerGroup, epoch: int, member_id: str, changes: Changes) -> None:
        """Convert the group when a classic member has replaced the last member of the consumer protocol, a static one.

        ``epoch`` is the group's before that. Kafka: it becomes the generation, even if the member has bumped it.
        """
        rebalances = group.epoch > group.assignment_epoch
        classic = self._classic_group(group, (), member_id, epoch)
        self._swap(group, classic, member_id, changes)
        self._classic.adopt(classic, Cause(cause="downgrade", member_id=member_id) if rebalances else None)

    def may_downgrade(self, members: int) -> bool:
        """Whether a group of so many members may become a classic one."""
        settings = self._ctx.settings
        return settings.group_consumer_migration_policy in DOWNGRADES and members <= settings.group_max_size

    def _swap(self, group: ConsumerGroup, classic: ClassicGroup, member_id: str, changes: Changes) -> None:
        records = (*group_tombstones(group), group_record(group.group_id, classic.metadata()))

        def swap() -> Undo:
            self._groups[group.group_id] = classic
            return swap_back

        def swap_back() -> None:
            self._groups[group.group_id] = group

        changes.make(records, swap)
        changes.on_failed.append(lambda: self._classic.answer_parked(classic, ErrorCode.NOT_COORDINATOR))
        changes.events.append(
            GroupConverted(
                group_id=group.group_id,
                group_type=CLASSIC,
                generation=classic.generation,
                member_id=member_id,
                members=list(classic.members),
            )
        )

    def _classic_group(
        self, group: ConsumerGroup, leaving: Sequence[str], joining: str | None, generation: int
    ) -> ClassicGroup:
        classic = self._classic.new_group(group.group_id)
        members = list(group.members)
        if classic.member_order == "hashmap":
            # Kafka: ClassicGroup.fromConsumerGroup. The first of the group's map leads; one that joins is added last.
            members = timeline_order(group.members.values(), Known(group.member_order.capacity, joining))
        for member_id in members:
            if member_id in leaving:
                continue
            member = group.members[member_id]
            metadata = member.metadata
            assert metadata.classic is not None, "only classic members are left"
            classic.add(
                ClassicMember(
                    group_id=group.group_id,
                    partition=group.partition,
                    member_id=member.member_id,
                    group_instance_id=metadata.instance_id,
                    client_id=metadata.client_id,
                    client_host=metadata.client_host,
                    session_timeout_ms=metadata.classic.session_timeout_ms,
                    rebalance_timeout_ms=metadata.rebalance_timeout_ms,
                    protocols=tuple(
                        JoinGroupRequestProtocol(name=name, metadata=data) for name, data in metadata.classic.protocols
                    ),
                )
            )
        classic.become_stable(generation)
        for each in classic.members.values():
            version = decode_subscription(each.metadata_for(classic.protocol_name or "")).version
            each.assignment = embedded_assignment(group.target_of(each.member_id), self._topics, version)
        return classic
