"""The events of consumer groups: epochs, targets, members that give up and take over, and rebalances made of them.

They are made from the records of a change when it is stored, so an event never says what the log does not have. Why an
epoch was bumped is not in the records: the change says so (``Changes.cause``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import CurrentAssignment
from rejoin.coordinator.core.groups.consumer.model.records import current_of
from rejoin.coordinator.core.groups.consumer.model.rules import rules_of
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER, ConsumerGroupState, ConsumerMemberState
from rejoin.coordinator.core.groups.consumer.progress import (
    NOTHING,
    GroupProgress,
    LoadedGroup,
    MemberProgress,
    NamedPartitions,
    together,
    without,
)
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import (
    GroupEpochBumped,
    MemberReconciled,
    PartitionsAwaited,
    RegexResolved,
    RevocationCompleted,
    RevocationRequested,
    TargetAssignmentComputed,
)
from rejoin.journal.events.coordinator import (
    Cause,
    GroupEmptied,
    Ownership,
    RebalanceCompleted,
    RebalanceStarted,
    StaticMemberReplaced,
)
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupMetadataRecord,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionRecord,
    ConsumerGroupTargetAssignmentMemberRecord,
    ConsumerGroupTargetAssignmentMetadataRecord,
)
from rejoin.protocol.records.groups.group_parts import partitions_of
from rejoin.protocol.unvalidated import unvalidated

_TOPICS_CHANGED: Final = Cause(cause="topic-metadata")


class GroupEvents:
    """Follows the groups of one shard, and emits what becomes of them."""

    def __init__(self, ctx: StepContext, topics: TopicsMetadata) -> None:
        self._ctx = ctx
        self._topics = topics
        self._names: dict[str, str] = {}
        """Topics by id, also those that are gone: members still have to give them up."""
        self._loaded: dict[str, LoadedGroup] = {}
        self._groups: dict[str, GroupProgress] = {}

    def loaded(self, group: ConsumerGroup) -> None:
        """A group was read from the log. If it was not at rest, its rebalance goes on here."""
        self._groups.pop(group.group_id, None)
        self._loaded[group.group_id] = LoadedGroup.of(group)
        is_away = any(member.is_away for member in group.members.values())
        if group.state in (ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE) or (
            group.state is ConsumerGroupState.RECONCILING and is_away
        ):
            return
        progress = self.progress(group.group_id)
        members = list(group.members)
        self._begin(group.group_id, progress, Cause(cause="failover"), group.state, group.epoch - 1, members)
        assert progress.rebalance is not None, "a rebalance has begun"
        progress.rebalance.join_ended_at = self._ctx.now

    def deleted(self, group_id: str) -> None:
        """A group is gone, or is a classic one."""
        self._groups.pop(group_id, None)
        self._loaded.pop(group_id, None)

    def progress(self, group_id: str) -> GroupProgress:
        """How far a group is."""
        progress = self._groups.get(group_id)
        if progress is None:
            progress = self._groups[group_id] = self._read(self._loaded.pop(group_id, None))
        return progress

    def _read(self, loaded: LoadedGroup | None) -> GroupProgress:
        first = rules_of(self._ctx.settings.emulator_as_kafka).first_epoch
        progress = GroupProgress(first, first)
        if loaded is None:
            return progress
        progress.epoch, progress.assignment_epoch = loaded.epoch, loaded.assignment_epoch
        for member_id, metadata, current in loaded.members:
            member = progress.member(member_id)
            member.instance_id, member.rebalance_timeout_ms = metadata.instance_id, metadata.rebalance_timeout_ms
            member.target = self._named(loaded.targets.get(member_id, {}))
            self._move(progress, member_id, current)
            member.asked_at = self._ctx.now
        progress.rest()
        return progress

    # --- changes

    def stored(self, group_id: str, changes: Changes) -> GroupProgress:
        """A change is in the log: emit what it means, but for the state of the group and the end of a rebalance."""
        progress = self.progress(group_id)
        before = progress.state
        for event in changes.events:
            if isinstance(event, StaticMemberReplaced):
                progress.rename(event.old_member_id, event.member_id)
            self._ctx.emit(event)
        if changes.upgraded_from is not None:
            before = ConsumerGroupState.STABLE
        target: Ownership = {}
        for record in changes.records:
            match record:
                case ConsumerGroupMemberMetadataRecord():
                    self._member(progress, record)
                case ConsumerGroupMetadataRecord() if record.value is not None:
                    self._bumped(group_id, progress, record.value.data, before, changes)
                case ConsumerGroupTargetAssignmentMemberRecord() if record.value is not None:
                    member_id = record.key.data.member_id
                    target[member_id] = self._named(partitions_of(record.value.data.topic_partitions))
                    progress.member(member_id).target = target[member_id]
                case ConsumerGroupTargetAssignmentMetadataRecord() if record.value is not None:
                    self._computed(group_id, progress, record.value.data.assignment_epoch, target, changes)
                case ConsumerGroupCurrentMemberAssignmentRecord() if record.value is not None:
                    current = current_of(record.value.data)
                    self._current(group_id, progress, record.key.data.member_id, current, changes)
                case ConsumerGroupRegularExpressionRecord() if record.value is not None and changes.resolves_regexes:
                    topics = list(record.value.data.topics)
                    pattern = record.key.data.regular_expression
                    self._ctx.emit(RegexResolved(group_id=group_id, pattern=pattern, topics=topics))
        return progress

    def _member(self, progress: GroupProgress, record: ConsumerGroupMemberMetadataRecord) -> None:
        if record.value is None:
            progress.remove(record.key.data.member_id)
            return
        member, value = progress.member(record.key.data.member_id), record.value.data
        member.instance_id, member.rebalance_timeout_ms = value.instance_id, value.rebalance_timeout_ms

    # --- epochs and targets

    def _bumped(
        self,
        group_id: str,
        progress: GroupProgress,
        value: ConsumerGroupMetadataValue,
        before: ConsumerGroupState,
        changes: Changes,
    ) -> None:
        epoch = value.epoch
        if epoch == changes.upgraded_from:
            # The members of a classic group are where they were; what the change does beyond that comes later.
            progress.epoch = progress.assignment_epoch = epoch
            return
        old, is_assigning = progress.epoch, progress.epoch > progress.assignment_epoch
        if old == changes.upgraded_from:
            progress.rest()
        progress.epoch = epoch
        cause = changes.cause or _TOPICS_CHANGED
        self._ctx.emit(
            GroupEpochBumped(
                group_id=group_id, generation=epoch, metadata_hash=str(value.metadata_hash), cause=cause, state=before
            )
        )
        if progress.rebalance is None or not is_assigning:
            self._begin(group_id, progress, cause, before, old)

    def _begin(
        self,
        group_id: str,
        progress: GroupProgress,
        cause: Cause,
        before: ConsumerGroupState,
        old_epoch: int,
        members: list[str] | None = None,
    ) -> None:
        progress.begin_rebalance(cause, self._ctx.now)
        self._ctx.emit(
            RebalanceStarted(
                group_id=group_id,
                generation=old_epoch,
                previous_state=before,
                cause=cause,
                initial=False,
                join_timeout_ms=None,
                members=members,
                group_type=CONSUMER,
            )
        )

    def _computed(
        self, group_id: str, progress: GroupProgress, epoch: int, target: Ownership, changes: Changes
    ) -> None:
        progress.assignment_epoch = epoch
        if not progress.members or epoch == changes.upgraded_from:
            return
        progress.assignor = changes.assignor
        if progress.rebalance is not None:
            progress.rebalance.join_ended_at = self._ctx.now
        self._ctx.emit(
            TargetAssignmentComputed(
                group_id=group_id,
                generation=epoch,
                assignor=changes.assignor,
                member_count=len(progress.members),
                target=target,
            )
        )

    # --- members

    def _current(
        self, group_id: str, progress: GroupProgress, member_id: str, current: CurrentAssignment, changes: Changes
    ) -> None:
        member = progress.member(member_id)
        was = (member.epoch, member.state, member.owned, member.pending)
        self._move(progress, member_id, current)
        if current.epoch <= 0 or current.epoch == changes.upgraded_from:
            return
        who: dict[str, Any] = {
            "group_id": group_id,
            "member_id": member_id,
            "group_instance_id": member.instance_id,
            "member_epoch": member.epoch,
        }
        epoch, state, owned, pending = was
        self._report_revocation(member, who, together(owned, pending), pending)
        if member.state is ConsumerMemberState.UNRELEASED_PARTITIONS:
            holders = progress.holders_of(without(member.target, member.owned))
            if holders != member.holders or epoch != member.epoch:
                self._ctx.emit(PartitionsAwaited(holders=holders, **who))
            member.holders = holders
        elif member.state is ConsumerMemberState.STABLE:
            member.holders = {}
            if (epoch, state, owned) != (member.epoch, member.state, member.owned):
                since = progress.rebalance
                waited_ms = 0 if since is None else self._ctx.now - since.started_at
                self._ctx.emit(MemberReconciled(partitions=member.owned, waited_ms=waited_ms, **who))

    def _report_revocation(
        self, member: MemberProgress, who: Mapping[str, Any], had: NamedPartitions, pending: NamedPartitions
    ) -> None:
        now = self._ctx.now
        given_up = without(had, member.owned, member.pending)
        if given_up:
            revocation_ms = now - member.asked_at if pending else 0
            self._ctx.emit(RevocationCompleted(partitions=given_up, revocation_ms=revocation_ms, **who))
        if member.pending and member.pending != pending:
            member.asked_at = now
            self._ctx.emit(
                RevocationRequested(
                    partitions=member.pending, rebalance_timeout_ms=max(member.rebalance_timeout_ms, 0), **who
                )
            )

    def _move(self, progress: GroupProgress, member_id: str, current: CurrentAssignment) -> None:
        owned, pending = self._named(current.assigned), self._named(current.pending)
        progress.move(member_id, current.epoch, current.state, owned, pending)

    # --- the end of a rebalance

    def finish(self, group_id: str, progress: GroupProgress) -> None:
        """Report that a rebalance is over, if it is."""
        rebalance = progress.rebalance
        if rebalance is None:
            return
        now = self._ctx.now
        if progress.state is ConsumerGroupState.EMPTY:
            owned_before = progress.owned_before
            progress.end_rebalance()
            self._ctx.emit(
                GroupEmptied(
                    group_id=group_id,
                    generation=progress.epoch,
                    cause=rebalance.cause,
                    rebalance_ms=now - rebalance.started_at,
                    owned_before=owned_before,
                    group_type=CONSUMER,
                )
            )
        elif progress.state is ConsumerGroupState.STABLE:
            progress.rebalances += 1
            owned_before = progress.owned_before
            moved, regained = progress.end_rebalance()
            # Not validated again: that would cost a look at each partition of the group.
            self._ctx.emit(
                unvalidated(
                    RebalanceCompleted,
                    group_id=group_id,
                    generation=progress.epoch,
                    cause=rebalance.cause,
                    attempts=rebalance.attempts,
                    rebalance_ms=now - rebalance.started_at,
                    join_ms=rebalance.join_ended_at - rebalance.attempt_started_at,
                    sync_ms=now - rebalance.join_ended_at,
                    leader=None,
                    previous_leader=None,
                    protocol=progress.assignor,
                    members_before=list(owned_before),
                    members_after=list(progress.members),
                    owned_before=owned_before,
                    owned_after=progress.owned_before,
                    moved=moved,
                    regained=regained,
                    group_type=CONSUMER,
                )
            )

    # --- topics

    def _named(self, partitions: Mapping[str, Iterable[int] | Collection[int]]) -> NamedPartitions:
        if not partitions:
            return NOTHING
        named = {self._name(topic_id): sorted(indexes) for topic_id, indexes in partitions.items() if indexes}
        return dict(sorted(named.items()))

    def _name(self, topic_id: str) -> str:
        name = self._topics.named(topic_id)
        if name is None:
            return self._names.get(topic_id, topic_id)
        self._names[topic_id] = name
        return name
