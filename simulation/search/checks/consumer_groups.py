"""Violations of a group of the consumer protocol, or of a group that changes its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.client.core.consumer import ConsumerCore
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER, ConsumerGroupState, ConsumerMemberState
from rejoin.coordinator.core.snapshots import ConsumerGroupSnapshot
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.journal.events.consumer_groups import GroupConverted
from rejoin.journal.events.coordinator import MemberRemoved
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitResponse
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.search.checks import assignments, convergence
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of
from rejoin.simulation.search.observed_consumer_groups import (
    ObservedConsumerGroups,
    assignment_in_log,
    flat,
    must_give_up,
)

NONE: Final = ErrorCode.NONE
CLASSIC: Final = "classic"
UPGRADES: Final = ("upgrade", "bidirectional")
DOWNGRADES: Final = ("downgrade", "bidirectional")
LATE_MS: Final = 1_500
"""Checks look every second."""


def _groups_of(observed: Observations) -> ObservedConsumerGroups:
    assert observed.consumer_groups is not None, "these checks are for runs with consumer groups"
    return observed.consumer_groups


def _changed(observed: Observations, step: ObservedStep) -> Iterator[ConsumerGroupSnapshot]:
    """The consumer groups that this step has looked at, where the node serves them."""
    for group_id in observed.simulation.scenario.groups:
        if step.concerns(group_id) and step.serves(group_id):
            group = step.node.consumer_group(group_id)
            if group is not None:
                yield group


def _active(observed: Observations) -> Iterator[tuple[NodeActor, ConsumerGroupSnapshot]]:
    for node in observed.simulation.cluster.nodes:
        if node.is_up and node.paused_until <= observed.simulation.world.now:
            for group_id in observed.simulation.scenario.groups:
                shard, group = node.shard(group_id), node.consumer_group(group_id)
                if shard is not None and shard.is_active and group is not None:
                    yield node, group


# --- after every step


def a_partition_has_two_holders(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """Two members have a partition, or one has it that another has not given up; whatever their epochs are."""
    for group in _changed(observed, step):
        if group.partition in observed.undecided:
            continue
        holders: dict[tuple[str, int], str] = {}
        for member_id, member in group.members.items():
            for partition in flat(member.assigned) | flat(member.pending):
                if holders.setdefault(partition, member_id) != member_id:
                    yield f"{group.group_id}: {partition[1]} of {holders[partition]} and {member_id}"


def a_reconciled_member_has_more_than_its_target(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for group in _changed(observed, step):
        if group.partition in observed.undecided:
            continue
        for member in group.members.values():
            is_there = member.state is ConsumerMemberState.STABLE and member.epoch == group.assignment_epoch
            if is_there and not flat(member.assigned) <= flat(member.target):
                yield f"{group.group_id}: {member.member_id} at epoch {member.epoch}"


def an_epoch_goes_back(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A member is answered an older epoch than it has, or its group has an older one than was answered."""
    for exchange, response in step.replies(ConsumerGroupHeartbeatResponse):
        request = request_of(exchange, ConsumerGroupHeartbeatRequest)
        if response.error_code is NONE and response.member_epoch < request.member_epoch:
            yield f"{request.member_id}: {response.member_epoch} after {request.member_epoch}"
    for group in _changed(observed, step):
        before = _groups_of(observed).acknowledged.get(group.group_id, 0)
        if group.partition in observed.undecided:
            continue  # what a change was made of may have failed; the next epoch is beyond all that were answered
        if group.epoch < before and observed.leads_in_truth(step.node, group.group_id):
            yield f"{group.group_id}: epoch {group.epoch} after {before}"


def an_epoch_is_answered_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(ConsumerGroupHeartbeatResponse):
        request = request_of(exchange, ConsumerGroupHeartbeatRequest)
        stored = _groups_of(observed).stored_epochs.get((request.group_id, response.member_id or ""), ())
        if response.error_code is NONE and response.member_epoch > 0 and response.member_epoch not in stored:
            yield f"{response.member_id}: {response.member_epoch}"


def a_member_with_another_epoch_is_accepted(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(ConsumerGroupHeartbeatResponse):
        error = _groups_of(observed).verdicts.pop(exchange, NONE)
        if error is not NONE and response.error_code is NONE:
            request = request_of(exchange, ConsumerGroupHeartbeatRequest)
            yield f"{request.member_id} with epoch {request.member_epoch}, which is {error.name}"


def a_member_commits_with_another_epoch(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        error = _groups_of(observed).verdicts.pop(exchange, NONE)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if error is not NONE and NONE in codes:
            yield f"{exchange.connection.client.name}, whose commit is {error.name}"


def a_member_says_that_it_gave_up_what_it_has(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """Revoked comes before acknowledged: what a member does not name is assigned to another."""
    yield from _groups_of(observed).claims


def a_consumer_group_member_is_removed_that_beat_in_time(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(MemberRemoved):
        last = _groups_of(observed).beats.get((step.node.name, step.node.incarnation, event.group_id, event.member_id))
        timeout = step.node.settings.group_consumer_session_timeout_ms
        if event.cause == "session-expiry" and last is not None and step.now - last < timeout:
            yield f"{event.member_id}: {step.now - last} ms after its last heartbeat, it has {timeout}"


def a_migration_loses_a_commit(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A group has changed its kind, and an offset is gone that was acknowledged."""
    for event in step.events(GroupConverted):
        yield from _lost_commits(observed, step.node, event.group_id)


def a_group_moves_against_its_policy(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A group with members has changed its kind, or is mixed, though ``group.consumer.migration.policy`` forbids it."""
    policy = step.node.settings.group_consumer_migration_policy
    for event in step.events(GroupConverted):
        if policy not in (UPGRADES if event.group_type == CONSUMER else DOWNGRADES):
            yield f"{event.group_id} is a {event.group_type} group through {event.member_id}, with policy {policy}"
    for group in _changed(observed, step):
        classic = [member_id for member_id, member in group.members.items() if member.is_classic]
        if policy == "disabled" and classic and len(classic) < len(group.members):
            yield f"{group.group_id} has the classic members {classic}, with policy {policy}"


def _refused_by_policy(observed: Observations, group_id: str, group_type: str) -> set[str]:
    """Consumers that the policy keeps out of a group of this kind: those of the other protocol, and those that failed
    just now."""
    node = observed.simulation.cluster.leader_of(group_id)
    policy = "bidirectional" if node is None else node.settings.group_consumer_migration_policy
    takes_others = policy in UPGRADES if group_type == CLASSIC else policy != "disabled"
    consumers = [] if takes_others else observed.simulation.members_of(group_id)
    return {each.name for each in consumers if each.core is None or each.core.config.group_protocol != group_type}


def _lost_commits(observed: Observations, node: NodeActor, group_id: str) -> Iterator[str]:
    assert node.core is not None, "a node that is down serves no group"
    offsets = node.core.describe_offsets(group_id, observed.simulation.world.now)
    there = {(each.topic, each.partition): each.offset for each in offsets}
    topics = observed.simulation.cluster.topics
    for (name, partition), offset in _groups_of(observed).commits.items():
        if topics[partition[0]].is_gone:
            continue
        # Commits of which the acknowledgement is on its way may be newer.
        if name == group_id and there.get(partition, -1) not in (offset, *observed.written(group_id, *partition)):
            yield f"{group_id}: {partition} is {there.get(partition)}, {offset} was acknowledged"


# --- when a consumer gets partitions


def a_partition_has_two_owners(observed: Observations, event: PartitionsAssigned) -> Iterator[str]:
    """A consumer takes a partition that another member of its group still reads; whatever the epochs are."""
    group_id = event.group_id or ""
    node = observed.simulation.cluster.leader_of(group_id)
    group = None if node is None else node.consumer_group(group_id)
    if group is None:
        return
    new = {(topic, index) for topic, indexes in event.partitions.items() for index in indexes}
    for other in observed.simulation.consumers.values():
        core = other.core
        if (
            not isinstance(core, ConsumerCore)
            or other.name == event.client_id
            or core.config.group_id != event.group_id
        ):
            continue
        member = group.members.get(core.generation.member_id)
        if member is None or member.epoch < 0:
            continue  # the group has given it up: it learns of that with its next request
        if event.group_instance_id is not None and core.config.group_instance_id == event.group_instance_id:
            continue  # the same member in an older process
        both = sorted(
            partition
            for partition in new & set(map(tuple, core.assignment()))
            if not _released_unnamed(observed, group, member.member_id, partition)
            and not _released_unnamed(observed, group, event.member_id or "", partition)
        )
        if both:
            yield f"{event.client_id} got {both} at epoch {event.generation}, {other.name} still has them"


def _released_unnamed(
    observed: Observations, group: ConsumerGroupSnapshot, member_id: str, partition: tuple[str, int]
) -> bool:
    """Whether the coordinator took a partition from a member that had not named it yet."""
    # Kafka: a heartbeat with an older assignment looks like an acknowledgement (ObservedConsumerGroups.never_named).
    # What a member has named once has no second owner.
    ids = _groups_of(observed).ids_of([TopicPartition(*partition)])
    member = group.members.get(member_id)
    held = set() if member is None else flat(member.assigned) | flat(member.pending)
    return ids <= _groups_of(observed).never_named.get((group.group_id, member_id), set()) - held


# --- now and then


def _is_written_again(observed: Observations, group: ConsumerGroupSnapshot) -> bool:
    """Whether what a timer writes has failed a moment ago: it is tried again every 500 ms."""
    failed_at = observed.failed_appends.get(group.partition)
    return failed_at is not None and observed.simulation.world.now - failed_at < LATE_MS


def a_silent_consumer_group_member_stays(observed: Observations) -> Iterator[str]:
    signs = _groups_of(observed).signs
    for node, group in _active(observed):
        timeout = node.settings.group_consumer_session_timeout_ms
        for member_id, member in group.members.items():
            last = signs.get((node.name, node.incarnation, group.group_id, member_id))
            late = observed.simulation.world.now - max(last or 0, observed.resumed(node))
            if member_id in _groups_of(observed).ghosts or _is_written_again(observed, group):
                continue
            if last is not None and not member.is_classic and late > timeout + LATE_MS:
                yield f"{member_id} of {group.group_id}: silent for {late} ms, it has {timeout}"


def a_member_never_gives_up_its_partitions(observed: Observations) -> Iterator[str]:
    """A member keeps partitions for longer than its rebalance timeout, and the others wait."""
    revoking, now = _groups_of(observed).revoking, observed.simulation.world.now
    there = set()
    for node, group in _active(observed):
        for member_id, member in group.members.items():
            # Kafka: timers are not brought back when a change fails that has cancelled them.
            if must_give_up(member) and not member.is_classic and group.partition not in observed.failed_appends:
                pending = frozenset(flat(member.pending))
                key = (node.name, node.incarnation, group.group_id, member_id, member.epoch, pending)
                there.add(key)
                since = max(revoking.setdefault(key, now), observed.resumed(node))
                timeout = observed.rebalance_timeout(group.group_id)
                if now - since > timeout + LATE_MS:
                    yield f"{member_id} of {group.group_id}: {now - since} ms, it has {timeout}"
    for key in [each for each in revoking if each not in there]:
        del revoking[key]


def a_group_differs_from_its_log(observed: Observations) -> Iterator[str]:
    for node, group in _active(observed):
        shard = node.shard(group.group_id)
        if shard is None or shard.appends_in_flight or not observed.leads_in_truth(node, group.group_id):
            continue
        logged = _groups_of(observed).logged.get(group.group_id)
        if logged is None:
            yield f"{group.group_id} is not in its log"
            continue
        here = (group.epoch, group.assignment_epoch, set(group.members))
        there = (logged.epoch, logged.assignment_epoch, logged.members | logged.current.keys())
        if here != there:
            yield f"{group.group_id}: {here} against {there}"
        for member_id, member in group.members.items():
            value = logged.current.get(member_id)
            has = (member.epoch, member.state, flat(member.assigned), flat(member.pending))
            if value is not None and has != assignment_in_log(value):
                yield f"{member_id}: {has} against {assignment_in_log(value)}"
            if flat(member.target) != logged.targets.get(member_id, set()):
                yield f"{member_id}: another target than in the log"


# --- at the end


def _stays_as_it_is(observed: Observations, group: ConsumerGroupSnapshot) -> bool:
    """Whether Kafka leaves a group where it is, though members lack what they should have.

    A member whose end could not be stored when it left has no timers any more. And since 4.3 the heartbeats of classic
    members wait for a target, which only a JoinGroup or a modern member computes: where the policy forbids a downgrade,
    a group may be left with classic members alone.
    """
    if not _groups_of(observed).ghosts.isdisjoint(group.members):
        return True
    return group.epoch > group.assignment_epoch and all(member.is_classic for member in group.members.values())


def a_member_does_not_reach_its_target(observed: Observations) -> Iterator[str]:
    """The faults are over, and a member lacks what it should have, or the group is not what it should be."""
    for group_id in observed.simulation.scenario.groups:
        node = observed.simulation.cluster.leader_of(group_id)
        group = None if node is None else node.consumer_group(group_id)
        if group is None:
            yield from convergence.a_group_does_not_settle(observed, _refused_by_policy(observed, group_id, CLASSIC))
            continue
        if _stays_as_it_is(observed, group):
            continue
        refused = _refused_by_policy(observed, group_id, CONSUMER)
        wanted = sorted(each.name for each in observed.simulation.members_of(group_id) if each.name not in refused)
        there = convergence.members_by_name(observed, group_id, group.members)
        if group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            yield f"{group_id} is {group.state}"
        if there != wanted:
            yield f"{group_id} has the members {there}, and should have {wanted}"
        for member_id, member in group.members.items():
            if flat(member.assigned) != flat(member.target):
                yield f"{member_id}: {sorted(flat(member.assigned))} of {sorted(flat(member.target))}"
            for consumer in observed.simulation.members_of(group_id):
                core = consumer.core
                if not isinstance(core, ConsumerCore) or core.generation.member_id != member_id:
                    continue
                owned = _groups_of(observed).ids_of(core.assignment())
                if owned != flat(member.target):
                    yield f"{consumer.name} has {sorted(owned)}, and should have {sorted(flat(member.target))}"


def a_partition_of_a_consumer_group_is_left_without_an_owner(observed: Observations) -> Iterator[str]:
    for group_id in observed.simulation.scenario.groups:
        node = observed.simulation.cluster.leader_of(group_id)
        group = None if node is None else node.consumer_group(group_id)
        if group is None or not _stays_as_it_is(observed, group):
            yield from assignments.a_partition_is_left_without_an_owner(observed)


def a_commit_is_gone(observed: Observations) -> Iterator[str]:
    for group_id in observed.simulation.scenario.groups:
        node = observed.simulation.cluster.leader_of(group_id)
        if node is not None and node.is_up:
            yield from _lost_commits(observed, node, group_id)
