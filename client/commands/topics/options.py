"""The options of kafka-topics.sh, and which of them go together.

Source: Kafka's TopicCommand.TopicCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.tools.arguments import ArgumentParser, UsageError

DESCRIPTION: Final = "List, create, describe, alter and delete topics, as kafka-topics.sh does."
ACTIONS: Final = ("--list", "--describe", "--create", "--alter", "--delete")


def parser() -> argparse.ArgumentParser:
    """The options of kafka-topics.sh."""
    made = ArgumentParser("topics", DESCRIPTION)
    made.add_server()
    add = made.add_argument
    add("--list", action="store_true", help="List topics.")
    add("--describe", action="store_true", help="Describe topics and their partitions.")
    add("--create", action="store_true", help="Create a topic.")
    add("--alter", action="store_true", help="Add partitions to topics.")
    add("--delete", action="store_true", help="Delete topics.")
    add("--topic", help="A topic. Except with --create, a regular expression, or several topics with commas.")
    add("--partitions", type=int, metavar="N", help="With --create or --alter: the number of partitions.")
    add("--replication-factor", type=int, metavar="N", help="With --create: the number of replicas of each partition.")
    add("--config", action="append", default=[], metavar="NAME=VALUE", help="With --create: a setting of the topic.")
    add("--if-exists", action="store_true", help="With --alter, --delete or --describe: ignore a missing topic.")
    add("--if-not-exists", action="store_true", help="With --create: ignore a topic that exists.")
    add("--exclude-internal", action="store_true", help="With --list or --describe: leave out internal topics.")
    made.add_connection()
    return made


def checked(options: argparse.Namespace) -> str | None:
    """The action, or none where nothing was given. Raises UsageError."""
    # Kafka: TopicCommandOptions.checkArgs.
    given = [action for action in ACTIONS if getattr(options, action.removeprefix("--"))]
    if not given and options.topic is None:
        return None
    if len(given) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(ACTIONS)}")
    action = given[0]
    if action in ("--create", "--alter", "--delete") and options.topic is None:
        raise UsageError(f'Missing required argument "[topic]" for {action}')
    if action == "--alter" and options.partitions is None:
        raise UsageError('Missing required argument "[partitions]" for --alter')
    for name, actions in (
        ("partitions", ("--create", "--alter")),
        ("replication_factor", ("--create",)),
        ("config", ("--create",)),
        ("if_not_exists", ("--create",)),
        ("if_exists", ("--alter", "--delete", "--describe")),
        ("exclude_internal", ("--list", "--describe")),
    ):
        if getattr(options, name) not in (None, False, []) and action not in actions:
            raise UsageError(f"Option --{name.replace('_', '-')} can't be used with option {action}")
    if options.partitions is not None and options.partitions < 1:
        raise UsageError("The partitions must be greater than 0")
    if options.replication_factor is not None and not 1 <= options.replication_factor <= 32_767:
        raise UsageError("The replication factor must be between 1 and 32767 inclusive")
    if any("=" not in pair for pair in options.config):
        raise UsageError('Invalid topic config: all configs to be added must be in the format "key=val".')
    return action
