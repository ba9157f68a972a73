"""`rejoin groups`: kafka-consumer-groups.sh, over Kafka's own requests.

    rejoin groups --bootstrap-server 127.0.0.1:9095 --describe --group orders
    rejoin groups --describe orders          # the same: the group may follow, and the server has a default

Options, columns and wording are those of the original; exit code 1 means the command line made no sense.

Source: Kafka's ConsumerGroupCommand and ConsumerGroupCommandOptions (tools).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Annotated, Any, Final, NoReturn

from cyclopts import App, Parameter

from rejoin.client.admin import Admin, Group
from rejoin.client.commands import groups_tables as tables
from rejoin.client.core.errors import CodedError, KafkaError
from rejoin.client.transports.http import HttpTransport
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.units import iso_duration_ms

app: Final = App(
    name="groups",
    help="List, describe, delete and reset groups, as kafka-consumer-groups.sh does.",
    help_flags=[],
    version_flags=[],
)

EARLIEST, LATEST = -2, -1

ACTIONS: Final = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")
STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES: Final = ("Consumer", "Classic", "Share")

DRY_RUN_WARNING: Final = (
    "WARN: No action will be performed as the --execute option is missing."
    "In a future major release, the default behavior of this command will be to prompt the user before "
    "executing the reset rather than doing a dry run. You should add the --dry-run option explicitly "
    "if you are scripting this command and want to keep the current default behavior without prompting."
)


class UsageError(Exception):
    """The command line makes no sense."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parser() -> argparse.ArgumentParser:
    """The options of kafka-consumer-groups.sh."""
    made = _Parser(prog="rejoin groups", description=app.help, allow_abbrev=False)
    add = made.add_argument
    add("--bootstrap-server", "--bootstrap", default="127.0.0.1:9095", metavar="SERVER", help="The server(s) to ask.")
    add("--list", action="store_true", help="List all consumer groups.")
    add("--describe", nargs="*", metavar="GROUP", help="Describe groups and their lag.")
    add("--delete", nargs="*", metavar="GROUP", help="Delete groups with their offsets.")
    add("--reset-offsets", nargs="*", metavar="GROUP", help="Set the offsets of inactive groups.")
    add("--delete-offsets", nargs="*", metavar="GROUP", help="Forget a group's offsets of some topics.")
    add("--group", action="append", default=[], help="The group to act on; may be given several times.")
    add("--all-groups", action="store_true", help="Act on all groups.")
    add("--topic", action="append", default=[], help="A topic, or topic:0,1,2; may be given several times.")
    add("--all-topics", action="store_true", help="Reset every topic the group has committed.")
    add("--members", action="store_true", help="With --describe: the members.")
    add("--offsets", action="store_true", help="With --describe: partitions and lag. This is the default.")
    add("--state", nargs="?", const="", metavar="STATES", help="With --describe or --list: the state.")
    add("--type", nargs="?", const="", metavar="TYPES", help="With --list: the type.")
    add("--verbose", action="store_true", help="With --describe: more, where there is more.")
    add("--timeout", type=int, default=5_000, metavar="MS", help="How long an answer may take.")
    add("--command-config", metavar="FILE", help="Taken for compatibility; there is nothing to set.")
    add("--dry-run", action="store_true", help="Only show what --reset-offsets would do.")
    add("--execute", action="store_true", help="Do what --reset-offsets shows.")
    add("--export", action="store_true", help="Print the plan of --reset-offsets as CSV.")
    add("--to-offset", type=int, metavar="OFFSET", help="Reset to this offset.")
    add("--to-earliest", action="store_true", help="Reset to the beginning.")
    add("--to-latest", action="store_true", help="Reset to the end.")
    add("--to-current", action="store_true", help="Reset to what is committed.")
    add("--shift-by", type=int, metavar="N", help="Reset by this many records, forwards or backwards.")
    add("--to-datetime", metavar="TIME", help="Reset to a time: YYYY-MM-DDTHH:mm:SS.sss")
    add("--by-duration", metavar="DURATION", help="Reset to so long ago: PnDTnHnMnS")
    add("--from-file", metavar="FILE", help="Reset to what a CSV file says.")
    return made


@app.default
def groups(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """List, describe, delete and reset groups, as kafka-consumer-groups.sh does."""
    return main(tokens)


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    made = parser()
    try:
        options = made.parse_args(arguments)
        action = checked(options)
        if action is None:
            made.print_help()
            return 0
        return asyncio.run(_run(action, options))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        print("--help lists the options.", file=sys.stderr)
        return 1


def checked(options: argparse.Namespace) -> str | None:
    """The action, with its groups in ``options.group``. Raises UsageError."""
    # Kafka: ConsumerGroupCommandOptions.checkArgs.
    given = [action for action in ACTIONS if _given(options, action)]
    if not given and not any(vars(options)[name] for name in ("group", "topic", "all_groups")):
        return None
    if len(given) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(ACTIONS)}")
    action = given[0]
    if action != "--list":
        options.group = [*(getattr(options, _name(action)) or []), *options.group]
    wants_group = action in {"--describe", "--delete", "--reset-offsets"}
    if wants_group and not options.group and not options.all_groups:
        raise UsageError(f"Option {action} takes one of these options: --group, --all-groups")
    if options.group and options.all_groups:
        raise UsageError("Option --group can't be used with option --all-groups")
    if action == "--describe":
        _check_describe(options)
    elif options.members or options.offsets or options.verbose:
        raise UsageError("Options --members, --offsets and --verbose are for --describe")
    if action == "--delete" and options.topic:
        raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if action == "--delete-offsets" and not (options.group and options.topic):
        raise UsageError("Option --delete-offsets takes the following options: --group, --topic")
    if action == "--reset-offsets" and options.dry_run and options.execute:
        raise UsageError("Option --reset-offsets only accepts one of --execute and --dry-run")
    return action


def _given(options: argparse.Namespace, action: str) -> bool:
    value = getattr(options, _name(action))
    return isinstance(value, list) or value is True


def _name(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _check_describe(options: argparse.Namespace) -> None:
    if sum([options.members, options.offsets, options.state is not None]) > 1:
        raise UsageError("Option --describe takes at most one of these options: --members, --offsets, --state")
    if options.state:
        raise UsageError("Option --describe does not take a value for --state")


async def _run(action: str, options: argparse.Namespace) -> int:
    try:
        transport = HttpTransport([part.strip() for part in options.bootstrap_server.split(",") if part.strip()])
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    actions: Mapping[str, Callable[[Admin, argparse.Namespace], Awaitable[None]]] = {
        "--list": list_groups,
        "--describe": describe,
        "--delete": delete,
        "--reset-offsets": reset_offsets,
        "--delete-offsets": delete_offsets,
    }
    async with transport:
        try:
            await actions[action](Admin(transport, options.timeout), options)
        except KafkaError as problem:
            text = tables.words(problem.error) if isinstance(problem, CodedError) else str(problem)
            print(tables.error(f"Executing consumer group command failed due to {text}"))
            return 0 if isinstance(problem, CodedError) else 1
    return 0


async def _group_ids(admin: Admin, options: argparse.Namespace) -> list[str]:
    if options.all_groups:
        return [group.group_id for group in await admin.list_groups()]
    return sorted(set(options.group))


# -- list and describe


async def list_groups(admin: Admin, options: argparse.Namespace) -> None:
    """``--list``."""
    if options.state is None and options.type is None:
        for group in await admin.list_groups():
            print(group.group_id)
        return
    states = _chosen(options.state, STATES, "state")
    types = _chosen(options.type, TYPES, "types")
    listed = await admin.list_groups(states, types)
    print(tables.listing(listed, types=options.type is not None, states=options.state is not None), end="")


def _chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    by_name = {name.lower(): name for name in known}
    chosen = [part.strip().lower() for part in (text or "").split(",") if part.strip()]
    if any(part not in by_name for part in chosen):
        raise UsageError(f"Invalid {what} list '{text}'. Valid {what} are: {', '.join(known)}")
    return [by_name[part] for part in chosen]


async def describe(admin: Admin, options: argparse.Namespace) -> None:
    """``--describe``."""
    for group_id in await _group_ids(admin, options):
        group = await admin.describe(group_id)
        rows = None if options.members or options.state is not None else await _offset_rows(admin, group)
        out, warning, goes_on = tables.member_state(group)
        if out is not None:
            print(out)
        if warning is not None:
            sys.stdout.flush()
            print(warning, file=sys.stderr)
        if not goes_on:
            continue
        if rows is not None:
            print(tables.offsets(rows) if rows else "", end="")
        elif options.members:
            print(tables.members(group, verbose=options.verbose) if group.members else "", end="")
        else:
            print(tables.state(group), end="")


async def _offset_rows(admin: Admin, group: Group) -> list[tables.OffsetRow]:
    """Assigned partitions by member, members with most first; then what is committed and nobody's."""
    if group.state == "Dead":
        return []
    committed = await admin.committed(group.group_id)
    holders = [member for member in group.members if member.assignment]
    holders.sort(key=lambda member: -len(member.assignment))
    assigned = dict.fromkeys(partition for member in holders for partition in member.assignment)
    ends = await admin.offsets(dict.fromkeys([*assigned, *committed], LATEST))

    def row(partition: TopicPartition, member: Any) -> tables.OffsetRow:
        return tables.OffsetRow(group.group_id, partition, committed.get(partition), ends.get(partition), member)

    rows = [row(partition, member) for member in holders for partition in sorted(member.assignment)]
    return rows + [row(partition, None) for partition in committed if partition not in assigned]


# -- delete


async def delete(admin: Admin, options: argparse.Namespace) -> None:
    """``--delete``."""
    results: dict[str, ErrorCode] = {}
    for group_id in await _group_ids(admin, options):
        try:
            await admin.delete_group(group_id)
            results[group_id] = ErrorCode.NONE
        except CodedError as problem:
            results[group_id] = problem.error
    print(tables.deleted_groups(results), end="")


async def delete_offsets(admin: Admin, options: argparse.Namespace) -> None:
    """``--delete-offsets``."""
    group_id = options.group[0]
    results: dict[TopicPartition, ErrorCode] = {}
    partitions = [p for topic in options.topic if ":" in topic for p in topic_partitions(topic)]
    whole = [topic for topic in options.topic if ":" not in topic]
    for topic, count in (await admin.partitions(whole)).items() if whole else ():
        if isinstance(count, ErrorCode):
            results[TopicPartition(topic, -1)] = count
        else:
            partitions += [TopicPartition(topic, index) for index in range(count)]
    top, each = await admin.delete_offsets(group_id, partitions)
    results |= {partition: each.get(partition, top) for partition in partitions}
    if top is ErrorCode.NONE:
        top = next((code for code in results.values() if code is not ErrorCode.NONE), ErrorCode.NONE)
    match top:
        case ErrorCode.NONE:
            print(f"Request succeed for deleting offsets with topic {', '.join(options.topic)} group {group_id}")
        case ErrorCode.INVALID_GROUP_ID:
            print(tables.error(f"'{group_id}' is not valid."))
        case ErrorCode.GROUP_ID_NOT_FOUND:
            print(tables.error(f"'{group_id}' does not exist."))
        case ErrorCode.GROUP_AUTHORIZATION_FAILED:
            print(tables.error(f"Access to '{group_id}' is not authorized."))
        case ErrorCode.NON_EMPTY_GROUP:
            problem = f"Deleting offsets of a consumer group '{group_id}' is forbidden if the group is not empty."
            print(tables.error(problem))
        case (
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            | ErrorCode.TOPIC_AUTHORIZATION_FAILED
            | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            print(tables.error("Encounter some partition level error, see the follow-up details:"))
        case _:
            print(tables.error(f"Encounter some unknown error: {top.name}"))
    print(tables.deleted_offsets(results), end="")


# -- reset


async def reset_offsets(admin: Admin, options: argparse.Namespace) -> None:
    """``--reset-offsets``: a dry run unless ``--execute`` is given."""
    if not options.dry_run and not options.execute:
        print(DRY_RUN_WARNING, file=sys.stderr)
    plans: dict[str, dict[TopicPartition, int]] = {}
    for group_id in await _group_ids(admin, options):
        state = (await admin.describe(group_id)).state
        if state not in {"Empty", "Dead"}:
            print(
                tables.error(
                    f"Assignments can only be reset if the group '{group_id}' is inactive, "
                    f"but the current state is {state}."
                )
            )
            plans[group_id] = {}
            continue
        plan = await plan_reset(admin, options, group_id, await _to_reset(admin, options, group_id))
        if options.execute and plan:
            await admin.commit(group_id, plan)
        plans[group_id] = dict(sorted(plan.items()))
    if options.export:
        print(tables.reset_csv(plans, one_group=len(options.group) == 1))
    else:
        print(tables.reset_plan(plans), end="")


async def _to_reset(admin: Admin, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        return list(await admin.committed(group_id))
    if not options.topic:
        if options.from_file is None:
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        return []
    partitions = [p for topic in options.topic if ":" in topic for p in topic_partitions(topic)]
    whole = [topic for topic in options.topic if ":" not in topic]
    for topic, count in (await admin.partitions(whole)).items() if whole else ():
        if isinstance(count, ErrorCode):
            raise CodedError(count)
        partitions += [TopicPartition(topic, index) for index in range(count)]
    return partitions


def topic_partitions(text: str) -> list[TopicPartition]:
    """The partitions of ``topic:0,1``. Raises UsageError."""
    parts = text.split(":")
    if len(parts) != 2:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for number in parts[1].split(","):
        if not number.strip().isdecimal():
            raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''")
        found.append(TopicPartition(parts[0], int(number)))
    return found


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
            try:
                ago_ms = iso_duration_ms(options.by_duration)
            except ValueError as problem:
                raise UsageError(f"--by-duration {options.by_duration}: {problem}") from None
            return await _at_time(admin, partitions, int(time() * 1_000) - ago_ms)
        case "--from-file":
            plan = read_plan(options.from_file, options.group).get(group_id)
            if plan is None:
                print(tables.error(f"No reset plan for group {group_id} found"))
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
        print(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.")
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
    print(f"WARN {text}", file=sys.stderr)


def instant(text: str) -> int:
    """``2024-05-01T10:00:00.000``, in UTC unless it says itself, in ms since 1970. Raises UsageError."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--to-datetime {text}: expected YYYY-MM-DDTHH:mm:SS.sss") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1_000)


def read_plan(path: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """A plan as ``--export`` writes it. Raises UsageError naming the line."""
    plans: dict[str, dict[TopicPartition, int]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise UsageError(f"--from-file {path}: {problem.strerror}") from None
    for number, line in enumerate(lines, 1):
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if not line.strip():
            continue
        if len(cells) == 3 and len(groups) == 1:
            cells.insert(0, groups[0])
        if len(cells) != 4 or not cells[2].isdecimal() or not cells[3].isdecimal():
            raise UsageError(f"--from-file {path}, line {number}: expected [GROUP,]TOPIC,PARTITION,OFFSET")
        plans.setdefault(cells[0], {})[TopicPartition(cells[1], int(cells[2]))] = int(cells[3])
    return plans
