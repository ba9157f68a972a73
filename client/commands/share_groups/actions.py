"""Actions of ``rejoin share-groups``, one function each."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from rejoin.client.admin.admin import GroupDescription
from rejoin.client.admin.share_groups import ShareGroupAdmin
from rejoin.client.commands.groups.actions import chosen
from rejoin.client.commands.groups.reset import reset_offsets as reset_start_offsets
from rejoin.client.commands.groups.selection import check_complete, selected_groups
from rejoin.client.commands.groups.tables import error, error_text, exception
from rejoin.client.commands.share_groups import tables
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.client.core.errors import CodedError, KafkaError, java_name
from rejoin.output import print_aside, print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.printable import printable

STATES: Final = ("Stable", "Dead", "Empty")


async def list_groups(admin: ShareGroupAdmin, options: argparse.Namespace) -> None:
    """``--list``."""
    states = [] if options.state is None else chosen(options.state, STATES, "state")
    listing = await admin.list_reachable_groups(states, ["share"])
    if options.state is None:
        for group in listing.groups:
            print_text(printable(group.group_id))
    else:
        print_text(tables.listing(listing.groups), end="")
    check_complete(listing)


async def describe(admin: ShareGroupAdmin, options: argparse.Namespace) -> None:
    """``--describe``."""
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            group = await admin.describe(group_id)
            if options.members:
                if _print_state(group) and group.members:
                    print_text(tables.members(group, verbose=options.verbose), end="")
            elif options.state is not None:
                if _print_state(group):
                    print_text(tables.state(group, verbose=options.verbose), end="")
            elif group.state == "Dead":
                raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND)
            else:
                found = await admin.start_offsets(group_id)
                print_text(tables.offsets(printable(group_id), found, verbose=options.verbose), end="")


def _print_state(group: GroupDescription) -> bool:
    """Print that a group is unknown or has no members; false for an unknown one."""
    name = printable(group.group_id)
    if group.state == "Dead":
        print_text(error(f"Share group '{name}' does not exist."))
        return False
    if group.state == "Empty":
        sys.stdout.flush()
        print_aside(f"\nShare group '{name}' has no active members.")
    return True


async def delete(admin: ShareGroupAdmin, options: argparse.Namespace) -> None:
    """``--delete``: groups of another kind, or with members, are left alone."""
    states = {group.group_id: group.group_state for group in await admin.list_groups(types=["share"])}
    failures: dict[str, str] = {}
    deleted: list[str] = []
    prefix = "org.apache.kafka.common.errors."
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            if group_id not in states:
                name = java_name(ErrorCode.GROUP_ID_NOT_FOUND)
                failures[group_id] = f"{prefix}{name}: Group '{group_id}' is not a share group."
            elif states[group_id] != "Empty":
                name = java_name(ErrorCode.NON_EMPTY_GROUP)
                failures[group_id] = f"{prefix}{name}: Share group '{group_id}' is not EMPTY."
            else:
                try:
                    await admin.delete_group(group_id)
                    deleted.append(group_id)
                except CodedError as problem:
                    failures[group_id] = exception(problem.error)
        print_text(tables.deleted_groups(failures, deleted), end="")


async def reset_offsets(admin: ShareGroupAdmin, options: argparse.Namespace) -> None:
    """``--reset-offsets``: all topics of the group, unless some are named."""
    group_id = options.group[0]
    if (await admin.describe(group_id)).state not in {"Empty", "Dead"}:
        raise KafkaError(f"Share group '{group_id}' is not empty.")
    options.all_topics = not options.topic and options.from_file is None
    await reset_start_offsets(admin, options)


async def delete_offsets(admin: ShareGroupAdmin, options: argparse.Namespace) -> None:
    """``--delete-offsets``."""
    top, results = await admin.forget_topics(options.group[0], options.topic)
    if top is not ErrorCode.NONE:
        print_text(error(error_text(top)))
    if results:
        print_text(tables.deleted_offsets(results), end="")


def _refusal(problem: CodedError | ToolRefusal) -> str:
    cause = error_text(problem.error) if isinstance(problem, CodedError) else str(problem)
    return error(f"Executing share group command failed due to {cause}")


run_action: Final = runs(
    {
        "--list": list_groups,
        "--describe": describe,
        "--delete": delete,
        "--reset-offsets": reset_offsets,
        "--delete-offsets": delete_offsets,
    },
    ShareGroupAdmin,
    _refusal,
)
