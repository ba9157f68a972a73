"""`rejoin groups --reset-offsets`: where each partition's offset goes.

Source: Kafka's ConsumerGroupCommand (resetOffsets, prepareOffsetsToReset).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from time import time
from typing import Final

from rejoin.client.admin.admin import Admin
from rejoin.client.commands.groups import tables
from rejoin.client.commands.groups.parsing import duration, instant, read_plan
from rejoin.client.commands.groups.selection import partitions_of, selected_groups
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.core.errors import CodedError
from rejoin.client.core.inputs import OffsetReset
from rejoin.output import print_aside, print_text
from rejoin.protocol.types import TopicPartition

EARLIEST: Final = OffsetReset.EARLIEST.value
LATEST: Final = OffsetReset.LATEST.value

DRY_RUN_WARNING: Final = (
    "WARN: No action will be performed as the --execute option is missing."
    "In a future major release, the default behavior of this command will be to prompt the user before "
    "executing the reset rather than doing a dry run. You should add the --dry-run option explicitly "
    "if you are scripting this command and want to keep the current default behavior without prompting."
)


async def reset_offsets(admin: Admin, options: argparse.Namespace) -> None:
    """``--reset-offsets``: a dry run unless ``--execute`` is given."""
    if not options.dry_run and not options.execute:
        print_aside(DRY_RUN_WARNING)
    plans: dict[str, dict[TopicPartition, int]] = {}
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            plans[group_id] = await _reset_group(admin, options, group_id)
        if options.export:
            print_text(tables.reset_csv(plans, one_group=len(options.group) == 1))
        else:
            print_text(tables.reset_plan(plans), end="")


async def _reset_group(admin: Admin, options: argparse.Namespace, group_id: str) -> dict[TopicPartition, int]:
    state = (await admin.describe(group_id)).state
    if state not in {"Empty", "Dead"}:
        print_text(
            tables.error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {state}."
            )
        )
        return {}
    plan = await plan_reset(admin, options, group_id, await _to_reset(admin, options, group_id))
    if options.execute and plan:
        await admin.commit(group_id, plan)
    return dict(sorted(plan.items()))


async def _to_reset(admin: Admin, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        return list(await admin.committed(group_id))
    if not options.topic:
        if options.from_file is None:
            raise UsageError(f"One of the reset scopes should be defined: {options.reset_scopes}.")
        return []
    partitions, errors = await partitions_of(admin, options.topic)
    for error in errors.values():
        raise CodedError(error)
    return partitions


async def plan_reset(
    admin: Admin, options: argparse.Namespace, group_id: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where each partition shall go. Raises UsageError when nothing, or too much, was asked for."""
    # Kafka: prepareOffsetsToReset.
    scenarios = {
        "--to-offset": options.to_offset is not None,
        "--to-earliest": options.to_earliest,
        "--to-latest": options.to_latest,
        "--shift-by": options.shift_by is not None,
        "--to-datetime": options.to_datetime is not None,
        "--by-duration": options.by_duration is not None,
        "--from-file": options.from_file is not None,
        "--to-current": options.to_current,
    }
    chosen = [scenario for scenario, given in scenarios.items() if given]
    if len(chosen) != 1:
        raise UsageError(f"Option --reset-offsets requires one of the following scenarios: {', '.join(scenarios)}")
    match chosen[0]:
        case "--to-offset":
            return await _within(admin, dict.fromkeys(partitions, options.to_offset))
        case "--to-earliest":
            return await _known(admin, partitions, EARLIEST, "starting")
        case "--to-latest":
            return await _known(admin, partitions, LATEST, "ending")
        case "--shift-by":
            committed = await admin.committed(group_id)
            for topic, partition in partitions:
                if (topic, partition) not in committed:
                    raise UsageError(
                        f"Cannot shift offset for partition {topic}-{partition} "
                        "since there is no current committed offset"
                    )
            return await _within(
                admin, {partition: committed[partition] + options.shift_by for partition in partitions}
            )
        case "--to-datetime":
            return await _at_time(admin, partitions, instant(options.to_datetime))
        case "--by-duration":
            return await _at_time(admin, partitions, int(time() * 1_000) - duration(options.by_duration))
        case "--from-file":
            plan = read_plan(options.from_file, options.group).get(group_id)
            if plan is None:
                print_text(tables.error(f"No reset plan for group {group_id} found"))
                return {}
            return await _within(admin, plan)
        case _:
            committed = await admin.committed(group_id)
            missing = [partition for partition in partitions if partition not in committed]
            kept = {partition: committed[partition] for partition in partitions if partition in committed}
            return kept | await _known(admin, missing, LATEST, "ending")


async def _known(
    admin: Admin, partitions: Sequence[TopicPartition], which: int, words: str
) -> dict[TopicPartition, int]:
    found = await admin.offsets(dict.fromkeys(partitions, which))
    result: dict[TopicPartition, int] = {}
    for partition in partitions:
        offset = found.get(partition)
        if offset is None:
            raise UsageError(f"Error getting {words} offset of topic partition: {partition[0]}-{partition[1]}")
        result[partition] = offset
    return result


async def _at_time(admin: Admin, partitions: Sequence[TopicPartition], at_ms: int) -> dict[TopicPartition, int]:
    found = await admin.offsets(dict.fromkeys(partitions, at_ms))
    late = [partition for partition in partitions if found.get(partition) is None]
    for topic, partition in late:
        print_text(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.")
    ends = await _known(admin, late, LATEST, "ending")
    return {partition: ends[partition] if partition in ends else found[partition] or 0 for partition in partitions}


async def _within(admin: Admin, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Offsets pulled into their partitions' logs, with a warning where that was needed."""
    # Kafka: checkOffsetsRange.
    starts = await admin.offsets(dict.fromkeys(wanted, EARLIEST))
    ends = await admin.offsets(dict.fromkeys(wanted, LATEST))
    result: dict[TopicPartition, int] = {}
    for partition, offset in wanted.items():
        start, end = starts.get(partition), ends.get(partition)
        name = f"{partition[0]}-{partition[1]}"
        if end is not None and offset > end:
            _warn(offset, "higher than latest", name, end)
            result[partition] = end
        elif start is not None and offset < start:
            _warn(offset, "lower than earliest", name, start)
            result[partition] = start
        else:
            result[partition] = offset
    return result


def _warn(offset: int, how: str, partition: str, instead: int) -> None:
    text = f"New offset ({offset}) is {how} offset for topic partition {partition}. Value will be set to {instead}"
    print_aside(f"WARN {text}")
