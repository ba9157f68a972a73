"""The output of kafka-streams-groups.sh, line for line. Every function returns text.

Source: Kafka's StreamsGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rejoin.client.admin.streams_groups import StreamsGroupDescription
from rejoin.client.commands.groups.tables import MISSING, error, exception, lines_of, widest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_describe import DescribedTasks
from rejoin.protocol.streams.tasks import TaskIds
from rejoin.protocol.types import TopicPartition

EPOCHS: Final = ("TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH")


class InputOffsets(NamedTuple):
    """A partition that members read: committed offset, its leader epoch, and the end of the log, where known."""

    offset: int | None
    leader_epoch: int | None
    end: int | None
    lag: int | None


def offsets(group_id: str, found: Mapping[TopicPartition, InputOffsets], *, verbose: bool) -> str:
    """``--describe`` and ``--describe --offsets``."""
    more = ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET"] if verbose else []
    rows = [["GROUP", "TOPIC", "PARTITION", *more, "OFFSET-LAG"]]
    for (topic, partition), each in found.items():
        numbers = [*(each[:3] if verbose else ()), each.lag]
        rows.append([group_id, topic, str(partition), *map(_number, numbers)])
    widths = [widest(rows, 0, 15), widest(rows, 1, 15), 10, *([15, 15, 15, 15] if verbose else [0])]
    return _lines(rows, widths)


def members(group: StreamsGroupDescription, *, verbose: bool) -> str:
    """``--describe --members``."""
    epoch = group.described.topology.epoch if group.described.topology is not None else 0
    before = [[*EPOCHS, "MEMBER"] if verbose else ["MEMBER"]]
    after = [["MEMBER-PROTOCOL", "MEMBER-EPOCH"] if verbose else []]
    last = [["PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
    for member in group.described.members:
        protocol = "classic" if member.is_classic else "streams"
        before.append([*([str(group.target_assignment_epoch), str(epoch)] if verbose else []), member.member_id])
        after.append([protocol, str(member.member_epoch)] if verbose else [])
        target = tasks(member.target_assignment, "TARGET-") if verbose else ""
        last.append([member.process_id, member.client_id, tasks(member.assignment) + target])
    names = ["GROUP", *[group.group_id] * len(group.members)]
    id_width = widest([row[-1:] for row in before], 0, 15)
    rows = [
        # Kafka: no blank between the topology's epoch and the member's id.
        [name, *([one[0], one[1].ljust(15) + one[2].ljust(id_width)] if verbose else one), *two, *three]
        for name, one, two, three in zip(names, before, after, last, strict=True)
    ]
    widths = [widest(rows, 0, 15), *([25, 0, 15, 15] if verbose else [id_width])]
    widths += [widest(rows, -3, 15), widest(rows, -2, 15), 0]
    return _lines(rows, widths)


def tasks(assignment: DescribedTasks, prefix: str = "") -> str:
    """Tasks as the tool shows them: ``ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 1:[1]; ``."""
    kinds = {
        "ACTIVE": assignment.active_tasks,
        "STANDBY": assignment.standby_tasks,
        "WARMUP": assignment.warmup_tasks,
    }
    return "".join(f"{prefix}{kind}: {_ids(some)}" for kind, some in kinds.items() if some)


def _ids(some: Iterable[TaskIds]) -> str:
    return "".join(f"{each.subtopology_id}:[{','.join(map(str, each.partitions))}]; " for each in some)


def state(group: StreamsGroupDescription, *, verbose: bool) -> str:
    """``--describe --state``."""
    coordinator = f"{group.coordinator.host}:{group.coordinator.port} ({group.coordinator.node_id})"
    header = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    epochs = [_number(group.group_epoch), _number(group.target_assignment_epoch)] if verbose else []
    rows = [
        ["GROUP", "COORDINATOR (ID)", "ASSIGNOR", "STATE", *header, "#MEMBERS"],
        [group.group_id, coordinator, group.assignor, group.state, *epochs, str(len(group.members))],
    ]
    widths = [widest(rows, 0, 15), widest(rows, 1, 25), widest(rows, 2, 15), 25, *([15, 25] if verbose else []), 0]
    return _lines(rows, widths)


def deleted_groups(failures: Mapping[str, str], deleted: Sequence[str]) -> str:
    """``--delete``. Failures are exceptions as Kafka's tool prints them."""
    names = "', '".join(deleted)
    if not failures:
        return f"Deletion of requested streams groups ('{names}') was successful.\n"
    lines = [error("Deletion of some streams groups failed:")]
    lines += [f"* Group '{group_id}' could not be deleted due to: {text}" for group_id, text in failures.items()]
    if deleted:
        lines.append(f"\nThese streams groups were deleted successfully: '{names}'.")
    return "".join(line + "\n" for line in lines)


def deleted_internal_topics(failures: Mapping[str, ErrorCode], groups: Sequence[str]) -> str:
    """``--delete --delete-all-internal-topics``: the groups whose topics were deleted, or errors of some of them."""
    if not failures:
        names = "', '".join(groups)
        return f"Deletion of associated internal topics of the streams groups ('{names}') was successful.\n"
    lines = ["Deletion of some associated internal topics failed:"]
    lines += [
        f"* Internal topics of the streams group '{group_id}' could not be deleted due to: {exception(code)}"
        for group_id, code in failures.items()
    ]
    return "".join(line + "\n" for line in lines)


def deleted_offsets(results: Mapping[TopicPartition, ErrorCode]) -> str:
    """``--delete-offsets``."""
    rows = [["TOPIC", "PARTITION", "STATUS"]]
    for (topic, partition), code in sorted(results.items(), key=lambda item: f"{item[0].topic}{item[0].partition}"):
        status = "Successful" if code is ErrorCode.NONE else f"Error: {exception(code)}"
        rows.append([topic, str(partition) if partition >= 0 else MISSING, status])
    return "".join("\n" + line for line in lines_of(rows, (widest(rows, 0, 15), 10, 15))) + "\n"


def _lines(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    return "".join(line + "\n" for line in lines_of(rows, widths))


def _number(value: int | None) -> str:
    return MISSING if value is None else str(value)
