"""Actions of ``rejoin streams``, one function each."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Final

from rejoin.client.admin.streams_groups import StreamsGroupAdmin, StreamsGroupDescription
from rejoin.client.commands.groups.actions import chosen
from rejoin.client.commands.groups.reset import plan_reset
from rejoin.client.commands.groups.selection import check_complete, partitions_of, selected_groups
from rejoin.client.commands.groups.tables import error, error_text, exception, reset_csv, reset_plan
from rejoin.client.commands.share_groups.tables import listing
from rejoin.client.commands.streams_groups import tables
from rejoin.client.commands.tools.connecting import PartRefused, ToolRefusal, runs
from rejoin.client.core.errors import CodedError, java_name
from rejoin.client.core.inputs import OffsetReset
from rejoin.output import print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.printable import printable
from rejoin.protocol.types import TopicPartition

STATES: Final = ("Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady")
INTERNAL: Final = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)
"""Names of internal topics, behind the name of the application. Kafka: matchesInternalTopicFormat."""
EXCEPTIONS: Final = "org.apache.kafka.common.errors."
NOT_STORED: Final = 1
"""Kafka: StreamsGroupTopologyDescriptionStatus."""


# -- list and describe


async def list_groups(admin: StreamsGroupAdmin, options: argparse.Namespace) -> None:
    """``--list``."""
    states = [] if options.state is None else chosen(options.state, STATES, "state")
    found = await admin.list_reachable_groups((), ["streams"])
    # Kafka: the coordinator's filter knows no state "NotReady", so all are asked for.
    groups = [group for group in found.groups if not states or group.group_state in states]
    if options.state is None:
        for group in groups:
            print_text(printable(group.group_id))
    else:
        print_text(listing(groups), end="")
    check_complete(found)


async def describe(admin: StreamsGroupAdmin, options: argparse.Namespace) -> None:
    """``--describe``."""
    missing = False
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            group = await admin.describe(group_id, topology=options.topology)
            if options.topology:
                missing |= not _print_topology(group)
            elif options.members:
                if group.members:
                    print_text(tables.members(group, verbose=options.verbose), end="")
            elif options.state is not None:
                if group.state == "Empty":
                    print_text(error(f"Streams group '{printable(group_id)}' has no active members."))
                print_text(tables.state(group, verbose=options.verbose), end="")
            elif group.members:
                print_text(tables.offsets(group_id, await _offsets(admin, group), verbose=options.verbose), end="")
    if missing:
        raise PartRefused


def _print_topology(group: StreamsGroupDescription) -> bool:
    """Print the description of a topology; false where there is none."""
    # Kafka: only a broker with a plugin stores descriptions (KIP-1331); Rejoin has none.
    name = printable(group.group_id)
    if group.described.topology_description is None:
        status = group.described.topology_description_status
        known = f"No topology description is stored for streams group '{name}'."
        other = f"No topology description is available for streams group '{name}' (status: {status})."
        print_text(error(known if status == NOT_STORED else other))
        return False
    for each in group.described.topology_description.subtopologies:
        print_text(f"Sub-topology: {printable(each.subtopology_id)}")
        for node in each.nodes:
            print_text(f"    {printable(node.name)} --> {', '.join(map(printable, node.successors)) or 'none'}")
    return True


async def _offsets(
    admin: StreamsGroupAdmin, group: StreamsGroupDescription
) -> dict[TopicPartition, tables.InputOffsets]:
    read = group.partitions_of_active_tasks()
    committed = await admin.committed_with_epochs(group.group_id)
    starts = await admin.offsets(dict.fromkeys(read, OffsetReset.EARLIEST.value))
    ends = await admin.offsets(dict.fromkeys(read, OffsetReset.LATEST.value))
    found = {}
    for partition in read:
        position, end = committed.get(partition), ends[partition]
        offset = None if position is None else position.offset
        epoch = None if position is None or position.leader_epoch < 0 else position.leader_epoch
        # Kafka: without a committed offset, all records count as lag.
        begin = starts[partition] if offset is None else offset
        lag = None if begin is None or end is None else end - begin
        found[partition] = tables.InputOffsets(offset, epoch, end, lag)
    return found


# -- delete


async def delete(admin: StreamsGroupAdmin, options: argparse.Namespace) -> None:
    """``--delete``: groups of another kind, or with members, are left alone."""
    states = {group.group_id: group.group_state for group in await admin.list_groups(types=["streams"])}
    failures: dict[str, str] = {}
    deleted: list[str] = []
    topics: dict[str, list[str]] = {}
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            if group_id not in states:
                text = f"Group '{printable(group_id)}' does not exist or is not a streams group."
                failures[group_id] = f"java.lang.IllegalArgumentException: {text}"
            elif states[group_id] != "Empty":
                name = java_name(ErrorCode.NON_EMPTY_GROUP)
                failures[group_id] = f"{EXCEPTIONS}{name}: Streams group '{printable(group_id)}' is not EMPTY."
            else:
                try:
                    if options.delete_all_internal_topics:
                        topics[group_id] = _inferred(await admin.describe(group_id))
                    await admin.delete_group(group_id)
                    deleted.append(group_id)
                except CodedError as problem:
                    failures[group_id] = exception(problem.error)
        results = {group_id: await _delete_topics(admin, topics.get(group_id, [])) for group_id in deleted}
        problems = {group_id: code for group_id, code in results.items() if code is not ErrorCode.NONE}
        print_text(tables.deleted_groups(failures, deleted), end="")
        with_topics = [group_id for group_id in deleted if topics.get(group_id)]
        if with_topics:
            print_text(tables.deleted_internal_topics(problems, with_topics), end="")


def _inferred(group: StreamsGroupDescription) -> list[str]:
    """Internal topics with names that applications give them; prints the others."""
    inferred = []
    for topic in group.internal_topics:
        if topic.startswith(f"{group.group_id}-") and INTERNAL.fullmatch(topic):
            inferred.append(topic)
        else:
            name, group_id = printable(topic), printable(group.group_id)
            text = f"The internal topic '{name}' is not inferred as internal"
            print_text(error(f"{text} and thus will not be deleted with the group '{group_id}'."))
    return inferred


async def _delete_topics(admin: StreamsGroupAdmin, names: Sequence[str]) -> ErrorCode:
    """Delete topics and print those that are not; the first error."""
    results = await admin.delete_topics(names) if names else ()
    wrong = [each for each in results if each.error_code is not ErrorCode.NONE]
    for each in wrong:
        print_text(f"Failed to delete internal topic: {printable(each.name or '')}")
    return wrong[0].error_code if wrong else ErrorCode.NONE


# -- offsets


async def reset_offsets(admin: StreamsGroupAdmin, options: argparse.Namespace) -> None:
    """``--reset-offsets``, and internal topics that shall go with it."""
    plans: dict[str, dict[TopicPartition, int]] = {}
    async with selected_groups(admin, options) as group_ids:
        for group_id in group_ids:
            group = await admin.describe(group_id)
            if group.state not in {"Empty", "Dead"}:
                name = printable(group_id)
                text = f"Assignments can only be reset if the group '{name}' is inactive"
                print_text(error(f"{text}, but the current state is {group.state}."))
                plans[group_id] = {}
                continue
            plan = await plan_reset(admin, options, group_id, await _to_reset(admin, options, group_id))
            plans[group_id] = dict(sorted(plan.items()))
            if options.execute:
                await _execute(admin, options, group, plan)
        if options.export:
            print_text(reset_csv(plans, one_group=len(options.group) == 1))
        else:
            print_text(reset_plan(plans), end="")


async def _to_reset(admin: StreamsGroupAdmin, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        return list(await admin.committed_input(group_id))
    if not options.topic:
        return []
    partitions, errors = await partitions_of(admin, options.topic)
    for problem in errors.values():
        raise CodedError(problem, error_text(problem))
    committed = await admin.committed(group_id)
    if not committed.keys() >= set(partitions):
        print_text(error(f"One or more topics are not part of the group '{printable(group_id)}'."))
        return []
    return partitions


async def _execute(
    admin: StreamsGroupAdmin,
    options: argparse.Namespace,
    group: StreamsGroupDescription,
    plan: Mapping[TopicPartition, int],
) -> None:
    if plan:
        await admin.commit(group.group_id, plan)
    topics = _inferred(group) if options.delete_all_internal_topics else options.delete_internal_topic
    results = await admin.delete_topics(topics) if topics else ()
    problems = {each.error_code for each in results} - {ErrorCode.NONE}
    if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in problems:
        text = "failed because the topics do not exist."
        print_text(error(f"Deleting internal topics for group '{printable(group.group_id)}' {text}"))
    elif problems:
        cause = exception(sorted(problems)[0])
        print_text(error(f"Deleting internal topics for group '{printable(group.group_id)}' failed due to {cause}"))


async def delete_offsets(admin: StreamsGroupAdmin, options: argparse.Namespace) -> None:
    """``--delete-offsets``."""
    group_id = options.group[0]
    errors: dict[str, ErrorCode] = {}
    if options.all_topics:
        partitions = list(await admin.committed_input(group_id))
    else:
        partitions, errors = await partitions_of(admin, options.topic)
    results = {TopicPartition(topic, -1): problem for topic, problem in errors.items()}
    top, each = await admin.delete_offsets(group_id, partitions) if partitions else (ErrorCode.NONE, {})
    results |= {partition: each.get(partition, top) for partition in partitions}
    if top is ErrorCode.NONE:
        top = next((each[one] for one in partitions if each.get(one, top) is not ErrorCode.NONE), ErrorCode.NONE)
    match top:
        case ErrorCode.NONE:
            print_text(f"Request succeeded for deleting offsets from group {printable(group_id)}.")
        case (
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            | ErrorCode.TOPIC_AUTHORIZATION_FAILED
            | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            print_text(error("Encountered some partition-level error, see the follow-up details."))
        case _:
            print_text(error(error_text(top)))
    print_text(tables.deleted_offsets(results), end="")


def _refusal(problem: CodedError | ToolRefusal) -> str:
    cause = f"{EXCEPTIONS}{problem.java_name}: {problem}"
    return error(f"Executing streams group command failed due to {printable(cause)}")


run_action: Final = runs(
    {
        "--list": list_groups,
        "--describe": describe,
        "--delete": delete,
        "--reset-offsets": reset_offsets,
        "--delete-offsets": delete_offsets,
    },
    StreamsGroupAdmin,
    _refusal,
)
