"""Actions of ``rejoin groups``, one function each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from rejoin.client.admin.admin import Admin, GroupDescription
from rejoin.client.commands.groups import tables
from rejoin.client.commands.groups.reset import reset_offsets
from rejoin.client.commands.groups.selection import check_complete, partitions_of, selected_groups
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.client.core.errors import CodedError
from rejoin.client.core.inputs import OffsetReset
from rejoin.output import print_aside, print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.printable import printable
from rejoin.protocol.types import TopicPartition

STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES: Final = ("Consumer", "Classic", "Share")


# -- list and describe


async def list_groups(admin: Admin, options: argparse.Namespace) -> None:
    """``--list``."""
    states = [] if options.state is None else chosen(options.state, STATES, "state")
    types = [] if options.type is None else chosen(options.type, TYPES, "types")
    listing = await admin.list_reachable_groups(states, types)
    if options.state is None and options.type is None:
        for group in listing.groups:
            print_text(printable(group.group_id))
    else:
        shows = {"types": options.type is not None, "states": options.state is not None}
        print_text(tables.listing(listing.groups, **shows), end="")
    check_complete(listing)


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """The names in a list with commas, as they are known. Raises UsageError."""
    by_name = {name.lower(): name for name in known}
    wanted = [part.strip().lower() for part in (text or "").split(",") if part.strip()]
    if any(part not in by_name for part in wanted):
        raise UsageError(f"Invalid {what} list '{text}'. Valid {what} are: {', '.join(known)}")
    return [by_name[part] for part in wanted]


async def describe(admin: Admin, options: argparse.Namespace) -> None:
    """``--describe``."""
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            await _describe_group(admin, options, group_id)


async def _describe_group(admin: Admin, options: argparse.Namespace, group_id: str) -> None:
    group = await admin.describe(group_id)
    rows = None if options.members or options.state is not None else await _offset_rows(admin, group)
    out, warning, goes_on = tables.member_state(group)
    if out is not None:
        print_text(out)
    if warning is not None:
        sys.stdout.flush()
        print_aside(warning)
    if not goes_on:
        return
    if rows is not None:
        epochs = options.verbose and group.group_epoch is not None
        print_text(tables.offsets(rows, epochs=epochs) if rows else "", end="")
    elif options.members:
        print_text(tables.members(group, verbose=options.verbose) if group.members else "", end="")
    else:
        print_text(tables.state(group, verbose=options.verbose), end="")


async def _offset_rows(admin: Admin, group: GroupDescription) -> list[tables.OffsetRow]:
    """Assigned partitions by member, the largest assignment first; then committed partitions that are not assigned."""
    if group.state == "Dead":
        return []
    committed = await admin.committed_with_epochs(group.group_id)
    holders = [member for member in group.members if member.assignment]
    holders.sort(key=lambda member: -len(member.assignment))
    assigned = dict.fromkeys(partition for member in holders for partition in member.assignment)
    ends = await admin.offsets(dict.fromkeys([*assigned, *committed], OffsetReset.LATEST.value))

    def row(partition: TopicPartition, member: Any) -> tables.OffsetRow:
        position = committed.get(partition)
        offset, epoch = (None, -1) if position is None else (position.offset, position.leader_epoch)
        return tables.OffsetRow(
            group.group_id, partition, offset, ends.get(partition), member, epoch if epoch >= 0 else None
        )

    rows = [row(partition, member) for member in holders for partition in sorted(member.assignment)]
    return rows + [row(partition, None) for partition in committed if partition not in assigned]


# -- delete


async def delete(admin: Admin, options: argparse.Namespace) -> None:
    """``--delete``."""
    results: dict[str, ErrorCode] = {}
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            try:
                await admin.delete_group(group_id)
                results[group_id] = ErrorCode.NONE
            except CodedError as problem:
                results[group_id] = problem.error
        print_text(tables.deleted_groups(results), end="")


async def delete_offsets(admin: Admin, options: argparse.Namespace) -> None:
    """``--delete-offsets``."""
    group_id = options.group[0]
    partitions, errors = await partitions_of(admin, options.topic)
    results = {TopicPartition(topic, -1): error for topic, error in errors.items()}
    top, each = await admin.delete_offsets(group_id, partitions)
    results |= {partition: each.get(partition, top) for partition in partitions}
    if top is ErrorCode.NONE:
        top = next((code for code in results.values() if code is not ErrorCode.NONE), ErrorCode.NONE)
    match top:
        case ErrorCode.NONE:
            print_text(f"Request succeed for deleting offsets with topic {', '.join(options.topic)} group {group_id}")
        case ErrorCode.INVALID_GROUP_ID:
            print_text(tables.error(f"'{group_id}' is not valid."))
        case ErrorCode.GROUP_ID_NOT_FOUND:
            print_text(tables.error(f"'{group_id}' does not exist."))
        case ErrorCode.GROUP_AUTHORIZATION_FAILED:
            print_text(tables.error(f"Access to '{group_id}' is not authorized."))
        case ErrorCode.NON_EMPTY_GROUP:
            problem = f"Deleting offsets of a consumer group '{group_id}' is forbidden if the group is not empty."
            print_text(tables.error(problem))
        case (
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            | ErrorCode.TOPIC_AUTHORIZATION_FAILED
            | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            print_text(tables.error("Encounter some partition level error, see the follow-up details:"))
        case _:
            print_text(tables.error(f"Encounter some unknown error: {top.name}"))
    print_text(tables.deleted_offsets(results), end="")


def _refusal(problem: CodedError | ToolRefusal) -> str:
    cause = tables.error_text(problem.error) if isinstance(problem, CodedError) else str(problem)
    return tables.error(f"Executing consumer group command failed due to {cause}")


run_action: Final = runs(
    {
        "--list": list_groups,
        "--describe": describe,
        "--delete": delete,
        "--reset-offsets": reset_offsets,
        "--delete-offsets": delete_offsets,
    },
    Admin,
    _refusal,
    code=0,  # as Kafka's tool
)
