"""The leader's work between JoinGroup and SyncGroup: read the members' subscriptions and run the assignor.

Source: Kafka's ConsumerCoordinator.onLeaderElected.
"""

from __future__ import annotations

from rejoin.client.assignors import BadAssignment, MemberSubscription, run_assignor
from rejoin.client.core import metadata
from rejoin.client.core.errors import AssignorFailedError
from rejoin.client.core.group import membership
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.membership import Candidates
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.client import AssignmentComputed, AssignorFailed
from rejoin.protocol.embedded.consumer_protocol import decode_subscription, encode_partitions
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.types import TopicPartition


def read_members(response: JoinGroupResponse) -> Candidates:
    """Decode every member's subscription. Raises AssignorFailedError naming a member whose bytes are none."""
    members: dict[str, MemberSubscription] = {}
    topics: dict[str, None] = {}
    for member in response.members:
        try:
            subscription = decode_subscription(member.metadata)
        except ValueError as error:
            raise AssignorFailedError(
                f"the subscription of {member.member_id} cannot be read: {error}", member_id=member.member_id
            ) from error
        members[member.member_id] = MemberSubscription(subscription, member.group_instance_id)
        topics.update(dict.fromkeys(subscription.topics))
    return Candidates(members, tuple(sorted(topics)))


def compute_assignment(state: ConsumerState, ctx: StepContext, candidates: Candidates) -> dict[str, bytes]:
    """Member id to its assignment's bytes. Raises AssignorFailedError, naming partition and member where it can."""
    assignor = ctx.assignors[state.generation.protocol or ""]
    cluster = metadata.cluster(state)
    try:
        given = run_assignor(assignor, cluster, candidates.members, ctx.rebalance_protocol)
    except BadAssignment as bad:
        partition = _topic_partition(bad.partition)
        ctx.emit(
            AssignorFailed(
                assignor=assignor.name,
                problem=bad.reason,
                topic=partition.topic if partition else None,
                partition=partition.partition if partition else None,
                culprit=bad.member_id,
                **membership.identity(state, ctx),
            )
        )
        raise AssignorFailedError(bad.reason, partition, bad.member_id) from bad
    total = sum(cluster.partition_counts.get(topic, 0) for topic in candidates.topics)
    assigned = sum(len(partitions) for partitions in given.values())
    ctx.emit(
        AssignmentComputed(
            assignor=assignor.name,
            member_count=len(candidates.members),
            partition_count=total,
            unassigned=max(0, total - assigned),
            **membership.identity(state, ctx),
        )
    )
    return {member_id: encode_partitions(partitions) for member_id, partitions in given.items()}


def _topic_partition(partition: object) -> TopicPartition | None:
    """The partition a fault is about, where an assignor's answer has one."""
    match partition:
        case (str(topic), int(number)):
            return TopicPartition(topic, number)
        case _:
            return None
