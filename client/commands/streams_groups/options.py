"""The options of kafka-streams-groups.sh, and which of them go together.

Source: Kafka's StreamsGroupCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.groups.options import ACTIONS, GroupTool, check_plan, chosen_action
from rejoin.client.commands.tools.arguments import UsageError

DESCRIPTION: Final = "List, describe, delete and reset streams groups, as kafka-streams-groups.sh does."

TOOL: Final = GroupTool(
    "streams",
    DESCRIPTION,
    listing="List all streams groups.",
    describing="Describe groups, with the lag of their input and repartition topics.",
    deleting="Delete groups without members.",
    resetting="Set the offsets of input topics of groups without members.",
    deleting_offsets="Delete a group's offsets of some input topics.",
    all_groups="Act on all streams groups.",
    all_topics="Reset or delete the offsets of every input topic.",
    offsets="With --describe: show lag by partition, as is the default.",
    topic_option="--input-topic",
)


def parser() -> argparse.ArgumentParser:
    """The options of kafka-streams-groups.sh."""
    made = TOOL.parser()
    add = made.add_argument
    add("--topology", action="store_true", help="With --describe: show the description of the topology, if stored.")
    add(
        "--delete-internal-topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="With --reset-offsets --execute: delete this internal topic, too.",
    )
    add(
        "--delete-all-internal-topics",
        action="store_true",
        help="With --delete, or --reset-offsets --execute: delete repartition and changelog topics, too.",
    )
    return made


def checked(options: argparse.Namespace) -> str | None:
    """The action, with its groups in ``options.group``. Raises UsageError."""
    # Kafka: StreamsGroupCommandOptions.checkArgs.
    action = chosen_action(options, ACTIONS)
    if action is None:
        return None
    has_topics = bool(options.topic) or options.all_topics
    if options.topology and (action != "--describe" or options.members or options.offsets or options.state is not None):
        raise UsageError("Option --topology is for --describe, without --members, --offsets and --state")
    if action == "--delete" and has_topics:
        raise UsageError("Kafka Streams does not support topic-specific offset deletion from a streams group.")
    if action == "--delete-offsets":
        if not (options.group and has_topics):
            raise UsageError(f"Option {action} takes the --group and one of these options: {options.reset_scopes}")
        if len(options.group) != 1:
            raise UsageError(f"Option {action} supports only one --group at a time")
    if action == "--reset-offsets":
        check_plan(options)
        if options.dry_run == options.execute:
            raise UsageError("Option --reset-offsets takes the option: --execute or --dry-run")
    elif options.dry_run or options.execute:
        raise UsageError("Only Option --reset-offsets accepts --execute or --dry-run")
    _check_internal_topics(action, options)
    return action


def _check_internal_topics(action: str, options: argparse.Namespace) -> None:
    resets = action == "--reset-offsets" and options.execute
    if options.delete_all_internal_topics and not (resets or action == "--delete"):
        raise UsageError("Option --delete-all-internal-topics is for --delete, and for --reset-offsets with --execute")
    if options.delete_internal_topic and not resets:
        raise UsageError("Option --delete-internal-topic is for --reset-offsets with --execute")
