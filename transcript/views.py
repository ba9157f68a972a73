"""Records, groups and timers as text of a transcript."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    StreamsGroupView,
    StreamsMemberView,
)
from rejoin.journal.formatting import owned
from rejoin.protocol.records.consumer_offsets import GroupRecord, OffsetRecord
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, TargetPartitions
from rejoin.protocol.records.groups.streams_groups import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
)
from rejoin.protocol.records.keyed import KeyedRecord, Record, TransactionMarker
from rejoin.transcript.responses import TopicName, show_assignment, show_tasks

_KINDS: Final = {
    "Metadata": "the group",
    "PartitionMetadata": "topics",
    "MemberMetadata": "subscribes to",
    "TargetAssignmentMetadata": "the target",
    "TargetAssignmentMember": "target",
    "CurrentMemberAssignment": "assignment",
    "RegularExpression": "expression",
    "Topology": "the topology",
    "StatePartitionMetadata": "share-partitions",
}


def show_record(record: Record, topic_name: TopicName = str) -> str:
    """A record of the offsets log, as text."""
    match record:
        case KeyedRecord(key=key) if hasattr(key.data, "group_id"):
            return f"log  {show_consumer_record(record, topic_name)}"
        case GroupRecord(key=key, value=None):
            return f"log  {key.data.group} is gone"
        case GroupRecord(key=key, value=value) if value is not None:
            group = value.data
            members = ", ".join(f"{member.member_id} {show_assignment(member.assignment)}" for member in group.members)
            if not members:
                return f"log  {key.data.group}: generation {group.generation}, no members"
            head = f"log  {key.data.group}: generation {group.generation}, {group.protocol}, leader {group.leader}"
            return f"{head}, {members}"
        case OffsetRecord(key=key, value=value):
            name = f"log  {key.data.group}  {key.data.topic}:{key.data.partition}"
            if value is None:
                return f"{name} is gone"
            held = f", held by producer {record.producer_id}" if record.producer_id != -1 else ""
            return f"{name}={value.data.offset}{held}"
        case TransactionMarker():
            return f"log  producer {record.producer_id} {'commits' if record.committed else 'aborts'}"
    raise AssertionError(f"{record!r} is not a record of the offsets log")


def show_consumer_record(record: KeyedRecord[Any, Any], topic_name: TopicName) -> str:
    """A record of a group whose coordinator assigns, by what is in its value; none is a tombstone."""
    key, value = record.key.data, record.value
    who = getattr(key, "member_id", getattr(key, "regular_expression", None))
    name = key.group_id if who is None else f"{key.group_id}  {who}"
    kind = type(record).__name__.partition("Group")[2].removesuffix("Record")
    if value is None:
        return f"{name}: {_KINDS[kind]} is gone"
    data = value.data
    match data:
        case ConsumerGroupMetadataValue():
            return f"{name}: epoch {data.epoch}"
        case ConsumerGroupMemberMetadataValue():
            wanted = data.subscribed_topic_regex or " ".join(data.subscribed_topic_names) or "-"
            return f"{name}: {_KINDS[kind]} {wanted}"
        case AssignmentEpoch():
            return f"{name}: target of epoch {data.assignment_epoch}"
        case TargetPartitions():
            return f"{name}: target {_by_name(data.topic_partitions, topic_name)}"
        case ConsumerGroupCurrentMemberAssignmentValue():
            has = _by_name(data.assigned_partitions, topic_name)
            revoking = _by_name(data.partitions_pending_revocation, topic_name)
            return f"{name}: epoch {data.member_epoch}, has {has}" + (
                f", gives up {revoking}" if revoking != "-" else ""
            )
        case StreamsGroupMetadataValue():
            validated = data.validated_topology_epoch
            return f"{name}: epoch {data.epoch}, {'ready' if validated >= 0 else 'not ready'}"
        case StreamsGroupTopologyValue():
            parts = " ".join(each.subtopology_id for each in data.subtopologies)
            return f"{name}: topology of epoch {data.epoch}: {parts or '-'}"
        case StreamsGroupMemberMetadataValue():
            return f"{name}: process {data.process_id or '-'}"
        case StreamsGroupTargetAssignmentMemberValue():
            return f"{name}: target {show_tasks(data.active_tasks)}, standby {show_tasks(data.standby_tasks)}"
        case StreamsGroupCurrentMemberAssignmentValue():
            return f"{name}: epoch {data.member_epoch}, {_current(data)}"
        case ConsumerGroupRegularExpressionValue():
            return f"{name}: matches {' '.join(data.topics) or '-'}"
    return f"{name}: {_KINDS[kind]}"


def _current(data: StreamsGroupCurrentMemberAssignmentValue) -> str:
    words = [f"has {show_tasks(data.active_tasks)}"]
    for word, tasks in (
        ("standby", data.standby_tasks),
        ("gives up", data.active_tasks_pending_revocation),
        ("gives up standby", data.standby_tasks_pending_revocation),
    ):
        words += [f"{word} {show_tasks(tasks)}"] if tasks else []
    return ", ".join(words)


def _by_name(topics: Any, topic_name: TopicName) -> str:
    return owned({topic_name(each.topic_id): list(each.partitions) for each in topics})


def show_consumer_group(group: ConsumerGroupView) -> str:
    """A consumer group, with what each member has, what it is to give up, and what it should have if that is more."""
    words = [f"{group.group_id}  {group.state}, epoch {group.group_epoch}, target {group.assignment_epoch}"]
    words += [group.protocol] if group.protocol else []
    for member in group.members:
        assert isinstance(member, ConsumerMemberView), "a consumer group has such members"
        has, target = owned(member.assignment or {}), owned(member.target)
        classic = " (classic)" if member.is_classic else ""
        revoking = f", gives up {owned(member.pending_revocation)}" if member.pending_revocation else ""
        wants = f", target {target}" if target != has else ""
        words.append(f"{member.member_id}{classic} at {member.member_epoch} has {has}{revoking}{wants}")
    return "; ".join(words)


def show_streams_group(group: StreamsGroupView) -> str:
    """A streams group: why it is not ready, and the member and standbys of each task."""
    words = [f"{group.group_id}  {group.state}, epoch {group.group_epoch}, target {group.assignment_epoch}"]
    words += [f"not ready: {group.not_ready}"] if group.not_ready else []
    words += [f"shutdown requested by {group.shutdown_requested_by}"] if group.shutdown_requested_by else []
    for member in group.members:
        assert isinstance(member, StreamsMemberView), "a streams group has such members"
        words.append(f"{member.member_id} at {member.member_epoch}")
    for task in group.tasks:
        holder = task.active or (f"{task.revoking} (gives up)" if task.revoking else "-")
        wanted = f", target {task.target}" if task.target and task.target != task.active else ""
        standby = f", standby {' '.join(task.standby)}" if task.standby else ""
        words.append(f"{task.subtopology_id}_{task.partition} {holder}{wanted}{standby}")
    return "; ".join(words)


def show_group(group_id: str, group: GroupView | None) -> str:
    """A group as its coordinator sees it."""
    if group is None:
        return f"{group_id}  does not exist"
    if isinstance(group, StreamsGroupView):
        return show_streams_group(group)
    if isinstance(group, ConsumerGroupView):
        return show_consumer_group(group)
    words = [f"{group_id}  {group.state}, generation {group.generation}"]
    if group.protocol:
        words.append(group.protocol)
    if group.leader:
        words.append(f"leader {group.leader}")
    if group.members:
        words.append(f"members {' '.join(member.member_id for member in group.members)}")
    if group.pending_members:
        words.append(f"may join {' '.join(group.pending_members)}")
    if group.pending_sync:
        words.append(f"must sync {' '.join(group.pending_sync)}")
    return ", ".join(words)


def show_timers(group_id: str, group: GroupView | None, now: int) -> str:
    """Timers, each with the ms until it is due."""
    due = {} if group is None else group.deadlines
    return f"{group_id}  due: {', '.join(f'{name} in {at - now}' for name, at in due.items()) or 'nothing'}"
