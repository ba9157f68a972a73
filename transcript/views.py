"""How records, groups and timers read in a transcript."""

from __future__ import annotations

from rejoin.coordinator.core.views import GroupView
from rejoin.protocol.records.consumer_offsets import GroupRecord, OffsetRecord
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.transcript.responses import show_assignment


def show_record(record: Record) -> str:
    """What stands in the offsets log."""
    match record:
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


def show_group(group_id: str, group: GroupView | None) -> str:
    """A group as its coordinator sees it."""
    if group is None:
        return f"{group_id}  does not exist"
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
    """What is due, and in how many ms."""
    due = {} if group is None else group.deadlines
    return f"{group_id}  due: {', '.join(f'{name} in {at - now}' for name, at in due.items()) or 'nothing'}"
