"""The options of kafka-share-groups.sh, and which of them go together.

Source: Kafka's ShareGroupCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.arguments import ArgumentParser, UsageError
from rejoin.client.commands.groups.options import ACTIONS, chosen_action

DESCRIPTION: Final = "List, describe, delete and reset share groups, as kafka-share-groups.sh does."


def parser() -> argparse.ArgumentParser:
    """The options of kafka-share-groups.sh."""
    made = ArgumentParser("share-groups", DESCRIPTION)
    made.add_server()
    add = made.add_argument
    add("--list", action="store_true", help="List all share groups.")
    add("--describe", nargs="*", metavar="GROUP", help="Describe groups, with start offsets and lag.")
    add("--delete", nargs="*", metavar="GROUP", help="Delete groups without members.")
    add("--reset-offsets", nargs="*", metavar="GROUP", help="Set the start offsets of a group without members.")
    add("--delete-offsets", nargs="*", metavar="GROUP", help="Delete a group's offsets of some topics.")
    add("--group", action="append", default=[], help="A group to act on; may be given several times.")
    add("--all-groups", action="store_true", help="Act on all share groups.")
    add("--topic", action="append", default=[], help="A topic, or TOPIC:0,1,2; may be given several times.")
    add("--all-topics", action="store_true", help="Reset every topic of the group.")
    add("--members", action="store_true", help="With --describe: show the members.")
    add("--offsets", action="store_true", help="With --describe: show start offsets and lag, as is the default.")
    add("--state", nargs="?", const="", metavar="STATES", help="With --describe or --list: show the state.")
    add("--verbose", action="store_true", help="With --describe: show more columns.")
    made.add_connection()
    add("--dry-run", action="store_true", help="With --reset-offsets: only show the new offsets.")
    add("--execute", action="store_true", help="With --reset-offsets: set the new offsets.")
    add("--export", action="store_true", help="With --reset-offsets: print the new offsets as CSV.")
    add("--to-offset", type=int, metavar="OFFSET", help="Reset to this offset.")
    add("--to-earliest", action="store_true", help="Reset to the beginning.")
    add("--to-latest", action="store_true", help="Reset to the end.")
    add("--to-current", action="store_true", help="Reset to the current start offset.")
    add("--to-datetime", metavar="TIME", help="Reset to a time, as YYYY-MM-DDTHH:mm:SS.sss.")
    add("--from-file", metavar="FILE", help="Reset to the offsets in a CSV file.")
    made.set_defaults(shift_by=None, by_duration=None)
    return made


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
