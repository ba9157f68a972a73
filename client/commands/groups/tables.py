"""The output of kafka-consumer-groups.sh, line for line: columns, widths and wording, so that runbooks go on working.

Every function returns text; this module sends and prints nothing. Classic groups have the columns of 3.9, groups of the
consumer protocol those of 4.x.

Source: Kafka's ConsumerGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.client.admin.admin import GroupDescription, MemberDescription
from rejoin.client.core.errors import java_name
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.list_groups import ListedGroup
from rejoin.protocol.printable import printable
from rejoin.protocol.types import TopicPartition

MISSING: Final = "-"

MESSAGES: Final = {
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.INVALID_GROUP_ID: "The configured groupId is invalid.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
}


def error_text(error: ErrorCode) -> str:
    """An error as Kafka's tools print an exception's text."""
    return MESSAGES.get(error, error.name)


def exception(error: ErrorCode) -> str:
    """An error as Kafka's tools print an exception."""
    return f"org.apache.kafka.common.errors.{java_name(error)}: {error_text(error)}"


def error(message: str) -> str:
    """An error of the tool's own, which Kafka prints to standard output."""
    return f"\nError: {message}"


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A line of ``--describe``: a partition, or a member without any."""

    group_id: str
    partition: TopicPartition | None
    offset: int | None
    end: int | None
    member: MemberDescription | None
    leader_epoch: int | None = None

    def cells(self, *, epochs: bool) -> tuple[str, ...]:
        known = self.offset is not None and self.end is not None
        return (
            self.group_id,
            self.partition.topic if self.partition else MISSING,
            str(self.partition.partition) if self.partition else MISSING,
            *([_number(self.leader_epoch)] if epochs else []),
            _number(self.offset),
            _number(self.end),
            str((self.end or 0) - (self.offset or 0)) if known else MISSING,
            self.member.member_id if self.member else MISSING,
            self.member.host if self.member else MISSING,
            self.member.client_id if self.member else MISSING,
        )


def _number(value: int | None) -> str:
    return MISSING if value is None else str(value)


def lines_of(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Cells padded to their widths, a blank between; the last one of width 0 is not padded."""
    return [" ".join(printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def widest(rows: Sequence[Sequence[str]], column: int, least: int) -> int:
    return max([least, *(len(printable(row[column])) for row in rows)])


def member_state(group: GroupDescription) -> tuple[str | None, str | None, bool]:
    """Texts about a group's state for standard output and standard error, and whether rows may follow."""
    # Kafka: shouldPrintMemberState.
    group_id = printable(group.group_id)
    match group.state:
        case "Dead":
            return error(f"Consumer group '{group_id}' does not exist."), None, False
        case "Empty":
            return None, f"\nConsumer group '{group_id}' has no active members.", True
        case "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling":
            return None, f"\nWarning: Consumer group '{group_id}' is rebalancing.", True
        case _:
            return None, None, True


def offsets(rows: Sequence[OffsetRow], *, epochs: bool = False) -> str:
    """``--describe`` and ``--describe --offsets``; with the leader epochs of what was committed if so asked."""
    numbers = [*(["LEADER-EPOCH"] if epochs else []), "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    header = ["GROUP", "TOPIC", "PARTITION", *numbers, "CONSUMER-ID", "HOST", "CLIENT-ID"]
    cells = [row.cells(epochs=epochs) for row in rows]
    widths = (
        widest(cells, 0, 15),
        widest(cells, 1, 15),
        10,
        *([15] * len(numbers)),
        widest(cells, -3, 15),
        widest(cells, -2, 15),
        0,
    )
    return "".join("\n" + line for line in lines_of([header, *cells], widths)) + "\n"


def members(group: GroupDescription, *, verbose: bool) -> str:
    """``--describe --members``."""
    static = any(member.group_instance_id for member in group.members)
    header = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows = [
        [
            group.group_id,
            member.member_id,
            *([member.group_instance_id or ""] if static else []),
            member.host,
            member.client_id,
            str(len(member.assignment)),
        ]
        for member in group.members
    ]
    least = [15, 15, *([17] if static else []), 15, 15, 15]
    widths = [widest(rows, column, width) for column, width in enumerate(least)]
    widths[-1] = 15
    lines = lines_of([header, *rows], widths)
    if not verbose:
        last = [""] * len(lines)
    elif group.group_epoch is None:
        last = ["ASSIGNMENT", *(assignment(member.assignment) for member in group.members)]
    else:
        last = _epochs(group)
    return "\n" + "".join(f"{line} {end}\n" for line, end in zip(lines, last, strict=True))


def assignment(partitions: Sequence[TopicPartition]) -> str:
    """A member's partitions as the tool shows them: ``(0,1), (2)``, one pair of brackets per topic."""
    # Kafka: the Java port of the tool lost the topics' names, and sorts numbers as text.
    if not partitions:
        return MISSING
    topics: dict[str, list[str]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(str(partition))
    return ", ".join(sorted(f"({','.join(sorted(numbers))})" for numbers in topics.values()))


def _epochs(group: GroupDescription) -> list[str]:
    """The columns that Kafka 4.x adds to the members of a consumer group: what they have, and what they are to have."""
    # Kafka: whether a member is upgraded is shown only while others are not.
    is_mixed = {True, False} <= {member.upgraded for member in group.members}
    rows = [
        [
            _number(member.member_epoch),
            named_assignment(member.assignment),
            _number(group.target_assignment_epoch),
            named_assignment(member.target_assignment),
            *([MISSING if member.upgraded is None else str(member.upgraded).lower()] if is_mixed else []),
        ]
        for member in group.members
    ]
    header = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    widths = [15, widest(rows, 1, 20), 15, widest(rows, 3, 20)]
    return lines_of([[*header, *(["UPGRADED"] if is_mixed else [])], *rows], [*widths, *([0] if is_mixed else [])])


def named_assignment(partitions: Sequence[TopicPartition]) -> str:
    """Partitions as the tool of 4.x shows them: ``orders:0,1;payments:2``."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return ";".join(sorted(f"{topic}:{','.join(map(str, sorted(each)))}" for topic, each in topics.items())) or MISSING


def state(group: GroupDescription, *, verbose: bool = False) -> str:
    """``--describe --state``."""
    coordinator = f"{group.coordinator.host}:{group.coordinator.port}  ({group.coordinator.node_id})"
    if group.group_epoch is not None:
        return _consumer_group_state(group, coordinator, verbose=verbose)
    # Kafka: the width meant for the coordinator is given to the group.
    widths = (max(25, len(coordinator)), 25, 20, 15, 0)
    rows = [
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
        (group.group_id, coordinator, group.assignor, group.state, str(len(group.members))),
    ]
    return "".join("\n" + line for line in lines_of(rows, widths)) + "\n"


def _consumer_group_state(group: GroupDescription, coordinator: str, *, verbose: bool) -> str:
    epochs = [_number(group.group_epoch), _number(group.target_assignment_epoch)] if verbose else []
    header = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    rows = [
        ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", *header, "#MEMBERS"],
        [group.group_id, coordinator, group.assignor or MISSING, group.state, *epochs, str(len(group.members))],
    ]
    widths = [widest(rows, 0, 15), widest(rows, 1, 25), 20, 20, *([15, 25] if verbose else []), 0]
    return "".join("\n" + line for line in lines_of(rows, widths)) + "\n"


def listing(groups: Sequence[ListedGroup], *, types: bool, states: bool) -> str:
    """``--list --state`` and ``--list --type``."""
    header = ["GROUP", *(["TYPE"] if types else []), *(["STATE"] if states else [])]
    rows = [
        [
            group.group_id,
            *([group.group_type.capitalize() or "Unknown"] if types else []),
            *([group.group_state or "Unknown"] if states else []),
        ]
        for group in groups
    ]
    widths = [widest(rows, 0, 15) + 10, *([20] * (len(header) - 1))]
    return "".join(line + "\n" for line in lines_of([header, *rows], widths))


def reset_plan(plans: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """``--reset-offsets``."""
    rows = [
        (group_id, topic, str(partition), str(offset))
        for group_id, plan in plans.items()
        for (topic, partition), offset in plan.items()
    ]
    header = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plans else []
    return "".join("\n" + line for line in lines_of([*header, *rows], (30, 30, 10, 15))) + "\n"


def reset_csv(plans: Mapping[str, Mapping[TopicPartition, int]], *, one_group: bool) -> str:
    """``--reset-offsets --export``."""
    return "".join(
        ("" if one_group else f"{group_id},") + f"{topic},{partition},{offset}\n"
        for group_id, plan in plans.items()
        for (topic, partition), offset in plan.items()
    )


def deleted_offsets(results: Mapping[TopicPartition, ErrorCode]) -> str:
    """``--delete-offsets``."""
    rows = [
        (
            topic,
            str(partition) if partition >= 0 else "Not Provided",
            "Successful" if code is ErrorCode.NONE else f"Error: :{exception(code)}",
        )
        for (topic, partition), code in sorted(results.items(), key=lambda item: f"{item[0].topic}{item[0].partition}")
    ]
    return "".join("\n" + line for line in lines_of([("TOPIC", "PARTITION", "STATUS"), *rows], (30, 15, 15))) + "\n"


def deleted_groups(results: Mapping[str, ErrorCode]) -> str:
    """``--delete``."""
    deleted = [group_id for group_id, code in results.items() if code is ErrorCode.NONE]
    failed = {group_id: code for group_id, code in results.items() if code is not ErrorCode.NONE}
    if not failed:
        return f"Deletion of requested consumer groups ('{', '.join(deleted)}') was successful.\n"
    lines = [error("Deletion of some consumer groups failed:")]
    lines += [
        f"* Group '{group_id}' could not be deleted due to: java.util.concurrent.ExecutionException: {exception(code)}"
        for group_id, code in failed.items()
    ]
    if deleted:
        # Kafka: its quotes are misplaced as well.
        names = "'".join(deleted)
        lines.append(f"\nThese consumer groups were deleted successfully: '{names}', '")
    return "".join(line + "\n" for line in lines)
