"""Descriptions of groups, as a cluster answers them, in the form of a coordinator's views.

Numbers that no description has are -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    InternalTopicView,
    MemberView,
    StreamsGroupView,
    StreamsMemberView,
    SubtopologyView,
    TaskView,
)
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.messages.groups.describe_groups import DescribedGroup, DescribedGroupMember
from rejoin.protocol.messages.streams.streams_group_describe import (
    DescribedStreamsGroup,
    DescribedStreamsGroupMember,
)
from rejoin.protocol.streams.tasks import TaskIds

UNKNOWN: Final = -1
"""A number that the answers do not have."""
_NOT_READY: Final = "topics of the topology are missing, or their numbers of partitions do not fit"


def classic_view(described: DescribedGroup) -> GroupView:
    """A group of the classic protocol. Its generation is in no description."""
    members = [
        MemberView(
            **_member(member, member.group_instance_id),
            protocols=[described.protocol_data] if described.protocol_data else [],
            topics=None,
            assignment=_assignment(member),
        )
        for member in described.members
    ]
    return GroupView(
        **_group(described, members),
        generation=UNKNOWN,
        protocol_type=described.protocol_type or None,
        protocol=described.protocol_data or None,
    )


def share_view(described: Any) -> ConsumerGroupView:
    """A share group."""
    return view_with_epochs(described).model_copy(update={"protocol_type": "share"})


def view_with_epochs(described: Any) -> ConsumerGroupView:
    """A consumer group, or one with the same answers."""
    members = [
        ConsumerMemberView(
            **_member(member, getattr(member, "instance_id", None)),
            protocols=[],
            topics=list(getattr(member, "subscribed_topic_names", ())),
            assignment=_partitions(member.assignment),
            member_epoch=member.member_epoch,
            previous_member_epoch=UNKNOWN,
            member_state="",
            pending_revocation={},
            target=_partitions(getattr(member, "target_assignment", None)),
            subscribed_regex=getattr(member, "subscribed_topic_regex", None),
            is_classic=getattr(member, "member_type", UNKNOWN) == 0 or getattr(member, "is_classic", False),
        )
        for member in described.members
    ]
    return ConsumerGroupView(
        **_group(described, members),
        generation=described.group_epoch,
        protocol_type=None,
        protocol=getattr(described, "assignor_name", None),
        group_epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
    )


def streams_view(described: DescribedStreamsGroup) -> StreamsGroupView:
    """A streams group. What members have to give up is in no description, nor why a topology is not ready."""
    members = [_streams_member(each) for each in described.members]
    topology = described.topology
    subtopologies = () if topology is None else topology.subtopologies or ()
    tasks = _tasks(members)
    return StreamsGroupView(
        **_group(described, members),
        generation=described.group_epoch,
        protocol_type="streams",
        protocol=described.assignor_name,
        group_epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
        topology_epoch=None if topology is None else topology.epoch,
        not_ready=_NOT_READY if described.group_state == "NotReady" else None,
        shutdown_requested_by=None,
        subtopologies=[
            SubtopologyView(
                subtopology_id=each.subtopology_id,
                source_topics=list(each.source_topics),
                repartition_source_topics=[topic.name for topic in each.repartition_source_topics],
                repartition_sink_topics=list(each.repartition_sink_topics),
                changelog_topics=[topic.name for topic in each.state_changelog_topics],
                tasks=sum(task.subtopology_id == each.subtopology_id for task in tasks) or None,
            )
            for each in subtopologies
        ],
        internal_topics=[
            InternalTopicView(
                topic=topic.name,
                kind=kind,
                subtopology_id=each.subtopology_id,
                partitions=topic.partitions or None,
            )
            for each in subtopologies
            for kind, topics in (
                ("repartition", each.repartition_source_topics),
                ("changelog", each.state_changelog_topics),
            )
            for topic in topics
        ],
        tasks=tasks,
    )


def _streams_member(described: DescribedStreamsGroupMember) -> StreamsMemberView:
    has, wanted = described.assignment, described.target_assignment
    return StreamsMemberView(
        **_member(described, described.instance_id),
        protocols=[],
        topics=None,
        assignment=_by_subtopology(has.active_tasks),
        member_epoch=described.member_epoch,
        previous_member_epoch=UNKNOWN,
        member_state="",
        process_id=described.process_id,
        standby_tasks=_by_subtopology(has.standby_tasks),
        warmup_tasks=_by_subtopology(has.warmup_tasks),
        pending_revocation={},
        pending_standby_revocation={},
        target=_by_subtopology(wanted.active_tasks),
        target_standby=_by_subtopology(wanted.standby_tasks),
    )


def _by_subtopology(tasks: Iterable[TaskIds]) -> dict[str, list[int]]:
    return {each.subtopology_id: list(each.partitions) for each in tasks}


def _tasks(members: Sequence[StreamsMemberView]) -> list[TaskView]:
    """Every task that a member has or is to have."""
    roles: dict[tuple[str, int], dict[str, list[str]]] = {}
    for member in members:
        for role, tasks in (
            ("active", member.assignment or {}),
            ("target", member.target),
            ("standby", member.standby_tasks),
            ("target_standby", member.target_standby),
            ("warmup", member.warmup_tasks),
        ):
            for subtopology, partitions in tasks.items():
                for partition in partitions:
                    roles.setdefault((subtopology, partition), {}).setdefault(role, []).append(member.member_id)
    return [
        TaskView(
            subtopology_id=subtopology,
            partition=partition,
            active=next(iter(found.get("active", ())), None),
            revoking=None,
            target=next(iter(found.get("target", ())), None),
            standby=found.get("standby", []),
            target_standby=found.get("target_standby", []),
            warmup=found.get("warmup", []),
        )
        for (subtopology, partition), found in sorted(roles.items())
    ]


def _member(described: Any, instance: str | None) -> dict[str, Any]:
    return {
        "member_id": described.member_id,
        "group_instance_id": instance,
        "client_id": described.client_id,
        "client_host": described.client_host,
        "session_timeout_ms": UNKNOWN,
        "rebalance_timeout_ms": UNKNOWN,
        "is_leader": False,
        "is_new": False,
        "awaiting_join": False,
        "awaiting_sync": False,
        "session_expires_at": None,
    }


def _group(described: Any, members: Sequence[MemberView]) -> dict[str, Any]:
    return {
        "group_id": described.group_id,
        "partition": UNKNOWN,
        "state": described.group_state,
        "previous_state": "",
        "state_since": UNKNOWN,
        "leader": None,
        "members": list(members),
        "pending_members": [],
        "pending_sync": [],
        "subscribed_topics": None,
        "new_member_added": False,
        "rebalance_cause": None,
        "rebalances": UNKNOWN,
        "deadlines": {},
    }


def _assignment(member: DescribedGroupMember) -> dict[str, list[int]] | None:
    if not member.member_assignment:
        return {}
    try:
        found = decode_assignment(member.member_assignment).partitions
    except ValueError:
        return None
    return _by_name((each.topic, each.partition) for each in found)


def _partitions(assignment: Any) -> dict[str, list[int]]:
    if assignment is None:
        return {}
    return {each.topic_name: list(each.partitions) for each in assignment.topic_partitions}


def _by_name(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
