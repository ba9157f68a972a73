"""The options of kafka-share-groups.sh, and which of them go together.

Source: Kafka's ShareGroupCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.groups.options import ACTIONS, SCENARIOS, GroupTool, chosen_action
from rejoin.client.commands.tools.arguments import UsageError

DESCRIPTION: Final = "List, describe, delete and reset share groups, as kafka-share-groups.sh does."


TOOL: Final = GroupTool(
    "share-groups",
    DESCRIPTION,
    listing="List all share groups.",
    describing="Describe groups, with start offsets and lag.",
    deleting="Delete groups without members.",
    resetting="Set the start offsets of a group without members.",
    all_groups="Act on all share groups.",
    all_topics="Reset every topic of the group.",
    offsets="With --describe: show start offsets and lag, as is the default.",
    to_current="Reset to the current start offset.",
    scenarios=tuple(each for each in SCENARIOS if each not in ("--shift-by", "--by-duration")),
)


def parser() -> argparse.ArgumentParser:
    """The options of kafka-share-groups.sh."""
    return TOOL.parser()


def checked(options: argparse.Namespace) -> str | None:
    """The action, with its groups in ``options.group``. Raises UsageError."""
    # Kafka: ShareGroupCommandOptions.checkArgs.
    action = chosen_action(options, ACTIONS)
    if action is None:
        return None
    if action in {"--delete", "--describe"} and options.topic:
        raise UsageError(f"Option {action} does not take the option: --topic")
    if action == "--delete-offsets" and not (options.group and options.topic):
        raise UsageError("Option --delete-offsets takes the following options: --group, --topic")
    if action == "--reset-offsets":
        if len(options.group) != 1:
            raise UsageError("Option --reset-offsets takes the option: --group, once")
        if options.dry_run == options.execute:
            raise UsageError("Option --reset-offsets takes the option: --execute or --dry-run")
    return action
