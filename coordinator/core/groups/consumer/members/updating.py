"""Steps that every request of a known member goes through: group epoch, target, reconciliation.

The same for a heartbeat of the consumer protocol and for a JoinGroup of a classic member.
Kafka: GroupMetadataManager.consumerGroupHeartbeat, classicGroupJoinToConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from rejoin.coordinator.core.groups.consumer.group_settings import GroupSettings
from rejoin.coordinator.core.groups.consumer.members.member_events import coming, complete_replacement
from rejoin.coordinator.core.groups.consumer.members.reconciliation import Goal, Owned, reconcile
from rejoin.coordinator.core.groups.consumer.members.regexes import Regexes
from rejoin.coordinator.core.groups.consumer.members.subscribing import NEW_MEMBER, Before
from rejoin.coordinator.core.groups.consumer.members.target import TargetAssignments, preferred_assignor, preferred_with
from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import (
    ConsumerMember,
    ConsumerMemberMetadata,
    CurrentAssignment,
)
from rejoin.coordinator.core.groups.consumer.model.records import current_record, epoch_record, metadata_record
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerMemberState
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH, REFRESH_MS, PartitionsByTopicId, RefreshDeadline
from rejoin.coordinator.core.groups.modern.member_order import Known
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, ids_of, metadata_hash
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import Cause, CauseClass
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.groups.consumer_groups import ConsumerGroupPartitionMetadataRecord


@dataclass(slots=True)
class Update:
    """A request of one member, as far as the group goes on because of it."""

    member_id: str
    before: Before
    metadata: ConsumerMemberMetadata
    owned: Owned
    context: Context
    known: Known
    lacked_target: bool = False
    """Whether a static member comes back that had no target when it left."""
    is_new_group: bool = False
    """Whether the request makes the group, or makes it of a classic one."""
    rejoins: bool = False
    """Whether the member joins again: with epoch 0, or by JoinGroup."""
    reason: str | None = None
    """The client's reason for joining (KIP-800)."""
    own: CurrentAssignment | None = None
    """The member's assignment before it took over an instance id."""
    downgrades: bool = False
    """Whether the group is a classic one after it. Then a target that is due is not computed: the leader will."""


class Updates:
    """Brings groups forward with the requests of their members."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        targets: TargetAssignments,
        regexes: Regexes,
        timers: MemberTimers,
        settings: GroupSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._targets = targets
        self._regexes = regexes
        self._timers = timers
        self._settings = settings

    def apply(self, group: ConsumerGroup, update: Update, changes: Changes) -> ConsumerMember | ErrorCode:
        """The member after its request, or why it is refused. The group may come to be by it."""
        group_id, member_id = group.group_id, update.member_id
        before, after = update.before[0], update.metadata
        subscriptions = group.subscriptions
        default = self._targets.default
        choice_before = preferred_assignor(subscriptions.server_assignors) or default
        choice = preferred_with(subscriptions.server_assignors, before, after) or default
        stored_type = group.subscription_type
        state = group.state
        is_named_anew = after.instance_id is not None and after.instance_id not in group.static_members
        if before != after or update.before is NEW_MEMBER:
            changes.write(metadata_record(group_id, member_id, after))
        made = self._groups[group_id]
        assert isinstance(made, ConsumerGroup), "the record of the member makes its group"
        group = made
        regex = self._regexes.subscribe(group, before, after, changes)
        if isinstance(regex, ErrorCode):
            return regex
        session_timeout_ms = self._settings.session_timeout_ms(group_id)
        # The replacement of a static member says that it joins again.
        is_replacement = complete_replacement(changes.events, after, session_timeout_ms)
        changes.events += coming(
            group,
            member_id,
            update.before,
            after,
            state=state,
            session_timeout_ms=session_timeout_ms,
            rejoins=update.rejoins and not is_replacement,
            reason=update.reason,
        )
        self._regexes.resolve_if_due(group, update.context, wanted=regex.wants_resolution)
        names_changed = before.topic_names != after.topic_names
        is_subscribed_anew = names_changed or regex.bumps_epoch
        changes.cause = _cause(update, changes, is_subscribed_anew, choice != choice_before)
        bump = is_subscribed_anew or choice != choice_before
        is_evaluated = self._update_epoch(group, changes, update.is_new_group, bump, regex.dropped)
        if update.downgrades and group.epoch > group.assignment_epoch:
            return group.members[member_id]
        if self._targets.is_due(group, self._settings.assignment_interval_ms(group_id), self._ctx.now):
            kind = group.subscriptions.type_for(len(group.members), regex.dropped) if is_evaluated else stored_type
            returned = member_id if update.lacked_target else None
            self._targets.compute(group, changes, choice, kind, self._ctx.now, update.known, returned)
            is_named_anew = False
        has_changed = names_changed or regex.changed
        return self._reconcile(group, update, changes, subscription_changed=has_changed, has_target=not is_named_anew)

    def _update_epoch(
        self, group: ConsumerGroup, changes: Changes, is_new_group: bool, bump: bool, dropped: Collection[str]
    ) -> bool:
        """A new group epoch, if a new assignment is needed; returns whether the topics were looked at."""
        now, refresh = self._ctx.now, group.refresh
        # No member has epoch 0. Groups begin with it before 4.3.
        bump = bump or group.needs_epoch or group.epoch == JOIN_EPOCH
        if not bump and not refresh.is_due(group.epoch, now):
            return False
        new_hash = metadata_hash(group.subscriptions.without(dropped), self._topics)
        if bump or new_hash != group.metadata_hash:
            changes.write(epoch_record(group.group_id, group.next_epoch, new_hash))
            changes.make((), group.repaired)
        if group.has_partition_metadata:
            changes.write(ConsumerGroupPartitionMetadataRecord.of(group.group_id, None))
        if not is_new_group:
            # Kafka: a group that is new is made by its records, and what was kept beside them is lost.
            group.refresh = RefreshDeadline(now + REFRESH_MS, group.epoch)
        return True

    def _reconcile(
        self,
        group: ConsumerGroup,
        update: Update,
        changes: Changes,
        *,
        subscription_changed: bool,
        has_target: bool,
    ) -> ConsumerMember:
        member = group.members[update.member_id]
        before = update.before[1]
        # Kafka: the target of a static member is looked up by its instance id, which the group did not know until now.
        target = group.target_of(member.member_id) if has_target else {}
        current = self._next_assignment(group, member, update, target, subscription_changed)
        if current != before or update.before is NEW_MEMBER:
            changes.finish()
            changes.write(current_record(group.group_id, member.member_id, current))
            if not member.is_classic:
                self._time_revocation(group, member)
        return member

    def _time_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Kafka: the timer that loading sets for a classic member is left alone here."""
        if member.current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
            self._timers.start_rebalance(group, member)
        else:
            self._timers.cancel_rebalance(group, member)

    def _next_assignment(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        update: Update,
        target: PartitionsByTopicId,
        changed: bool,
    ) -> CurrentAssignment:
        before = update.before[1]
        if not changed and before.is_reconciled_to(group.assignment_epoch):
            return before
        names = group.subscriptions.topics_of(member.metadata)
        goal = Goal(
            epoch=group.assignment_epoch,
            partitions=target,
            subscribed=ids_of(names, self._topics),
            names_topics=bool(names),
            has_owner=group.has_owner if update.own is None else partial(_has_owner, group, update.own),
            follows_subscription=group.rules.follows_subscription,
        )
        return reconcile(before, goal, update.owned, subscription_changed=changed)


def _has_owner(group: ConsumerGroup, own: CurrentAssignment, topic_id: str, partition: int) -> bool:
    """Whether any member has a partition.

    Kafka: owners are those before the request. A member that goes on in place of an absent static one gives up its own
    partitions by that, and they are free from the next heartbeat on.
    """
    is_own = partition in own.assigned.get(topic_id, ()) or partition in own.pending.get(topic_id, ())
    return is_own or group.has_owner(topic_id, partition)


def _cause(update: Update, changes: Changes, subscription_changed: bool, assignor_changed: bool) -> Cause | None:
    """Why the group has a new epoch after this request; none where its topics have changed."""
    why: CauseClass
    if changes.upgraded_from is not None:
        why = "upgrade"
    elif update.before is NEW_MEMBER:
        why = "join-new"
    elif subscription_changed:
        why = "rejoin-metadata"
    elif assignor_changed:
        why = "assignor-changed"
    else:
        return None
    return Cause(cause=why, member_id=update.member_id, group_instance_id=update.metadata.instance_id)
