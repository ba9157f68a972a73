"""The output of kafka-share-groups.sh, line for line. Every function returns text.

Source: Kafka's ShareGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.client.admin.admin import GroupDescription
from rejoin.client.admin.share_groups import StartOffset
from rejoin.client.commands.groups.tables import MISSING, error, exception, lines_of, named_assignment, widest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.list_groups import ListedGroup
from rejoin.protocol.types import TopicPartition


def listing(groups: Sequence[ListedGroup]) -> str:
    """``--list --state``."""
    rows = [["GROUP", "STATE"], *([group.group_id, group.group_state or "Unknown"] for group in groups)]
    return "".join(line + "\n" for line in lines_of(rows, (widest(rows, 0, 15), 0)))


def offsets(group_id: str, found: Mapping[TopicPartition, StartOffset], *, verbose: bool) -> str:
    """``--describe`` and ``--describe --offsets``."""
    if not found:
        return f"\nShare group '{group_id}' has no offset information.\n"
    rows = [["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET", "LAG"]]
    for (topic, partition), each in found.items():
        epoch = [_number(each.leader_epoch)] if verbose else []
        rows.append([group_id, topic, str(partition), *epoch, _number(each.offset), _number(each.lag)])
    widths = [widest(rows, 0, 15), widest(rows, 1, 15), 10, *([13] if verbose else []), 13, 0]
    return _table(rows, widths)


def members(group: GroupDescription, *, verbose: bool) -> str:
    """``--describe --members``."""
    epochs = ["MEMBER-EPOCH"] if verbose else []
    rows = [["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *epochs, "ASSIGNMENT"]]
    for member in sorted(group.members, key=lambda each: each.member_id):
        named = named_assignment(member.assignment) if member.assignment else ""
        epoch = [str(member.member_epoch)] if verbose else []
        who = [group.group_id, member.member_id, member.host, member.client_id]
        rows.append([*who, str(len(member.assignment)), *epoch, named])
    widths = [*(widest(rows, column, 15) for column in range(4)), 12, *([13] if verbose else []), 0]
    return _table(rows, widths)


def state(group: GroupDescription, *, verbose: bool) -> str:
    """``--describe --state``."""
    coordinator = f"{group.coordinator.host}:{group.coordinator.port}  ({group.coordinator.node_id})"
    header = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else []
    epochs = [_number(group.group_epoch), _number(group.target_assignment_epoch)] if verbose else []
    rows = [
        ["GROUP", "COORDINATOR (ID)", "STATE", *header, "#MEMBERS"],
        [group.group_id, coordinator, group.state, *epochs, str(len(group.members))],
    ]
    return _table(rows, [widest(rows, 0, 15), widest(rows, 1, 25), 15, *([12, 17] if verbose else []), 0])


def deleted_groups(failures: Mapping[str, str], deleted: Sequence[str]) -> str:
    """``--delete``. Failures are exceptions as Kafka's tool prints them."""
    names = ", ".join(f"'{group_id}'" for group_id in deleted)
    if not failures:
        return f"Deletion of requested share groups ({names}) was successful.\n"
    lines = [error("Deletion of some share groups failed:")]
    lines += [f"* Group '{group_id}' could not be deleted due to: {text}" for group_id, text in failures.items()]
    if deleted:
        lines.append(f"\nThese share groups were deleted successfully: {names}")
    return "".join(line + "\n" for line in lines)


def deleted_offsets(results: Mapping[str, ErrorCode]) -> str:
    """``--delete-offsets``."""
    rows = [["TOPIC", "STATUS"]]
    for topic, code in sorted(results.items()):
        rows.append([topic, "Successful" if code is ErrorCode.NONE else f"Error: {exception(code).partition(': ')[2]}"])
    return _table(rows, (widest(rows, 0, 15), 0))


def _table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    return "".join("\n" + line for line in lines_of(rows, widths)) + "\n"


def _number(value: int | None) -> str:
    return MISSING if value is None else str(value)
