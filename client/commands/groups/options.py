"""The options of kafka-consumer-groups.sh, which the tools of other groups share, and which of them go together.

Source: Kafka's ConsumerGroupCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.client.commands.tools.arguments import ArgumentParser, UsageError

DESCRIPTION: Final = "List, describe, delete and reset groups, as kafka-consumer-groups.sh does."
ACTIONS: Final = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")


SCENARIOS: Final = (
    "--to-offset",
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--shift-by",
    "--to-datetime",
    "--by-duration",
    "--from-file",
)


@dataclass(frozen=True, slots=True)
class GroupTool:
    """One of Kafka's three tools for groups: its name here, and how its options differ from those of the other two.

    Fields after the description are help texts. ``scenarios`` are those of ``--reset-offsets``.
    """

    name: str
    description: str
    listing: str
    describing: str
    deleting: str
    resetting: str
    deleting_offsets: str = "Delete a group's offsets of some topics."
    all_groups: str = "Act on all groups."
    all_topics: str = "Reset every topic that has a committed offset."
    offsets: str = "With --describe: show partitions and lag, as is the default."
    to_current: str = "Reset to the committed offset."
    topic_option: str = "--topic"
    scenarios: tuple[str, ...] = SCENARIOS

    @property
    def all_topics_option(self) -> str:
        """The option for all topics."""
        return f"--all-{self.topic_option.removeprefix('--')}s"

    def parser(self) -> ArgumentParser:
        """The options that all three have. The groups of an action may follow it."""
        made = ArgumentParser(self.name, self.description)
        made.add_server()
        add = made.add_argument
        add("--list", action="store_true", help=self.listing)
        add("--describe", nargs="*", metavar="GROUP", help=self.describing)
        add("--delete", nargs="*", metavar="GROUP", help=self.deleting)
        add("--reset-offsets", nargs="*", metavar="GROUP", help=self.resetting)
        add("--delete-offsets", nargs="*", metavar="GROUP", help=self.deleting_offsets)
        add("--group", action="append", default=[], help="A group to act on; may be given several times.")
        add("--all-groups", action="store_true", help=self.all_groups)
        topic = "A topic, or TOPIC:0,1,2; may be given several times."
        add(self.topic_option, action="append", default=[], dest="topic", metavar="TOPIC", help=topic)
        add(self.all_topics_option, action="store_true", dest="all_topics", help=self.all_topics)
        add("--members", action="store_true", help="With --describe: show the members.")
        add("--offsets", action="store_true", help=self.offsets)
        state = "With --describe or --list: show the state."
        add("--state", nargs="?", const="", metavar="STATES", help=state)
        add("--verbose", action="store_true", help="With --describe: show more columns.")
        made.add_connection()
        add("--dry-run", action="store_true", help="With --reset-offsets: only show the new offsets.")
        add("--execute", action="store_true", help="With --reset-offsets: set the new offsets.")
        add("--export", action="store_true", help="With --reset-offsets: print the new offsets as CSV.")
        self._add_scenarios(made)
        scopes = f"{self.all_topics_option}, {self.topic_option}"
        made.set_defaults(type=None, reset_scopes=scopes)
        return made

    def _add_scenarios(self, made: ArgumentParser) -> None:
        add = made.add_argument
        add("--to-offset", type=int, metavar="OFFSET", help="Reset to this offset.")
        add("--to-earliest", action="store_true", help="Reset to the beginning.")
        add("--to-latest", action="store_true", help="Reset to the end.")
        add("--to-current", action="store_true", help=self.to_current)
        if "--shift-by" in self.scenarios:
            add("--shift-by", type=int, metavar="N", help="Reset by this many records, forwards or backwards.")
        add("--to-datetime", metavar="TIME", help="Reset to a time, as YYYY-MM-DDTHH:mm:SS.sss.")
        if "--by-duration" in self.scenarios:
            add("--by-duration", metavar="DURATION", help="Reset to this long ago, as PnDTnHnMnS.")
        add("--from-file", metavar="FILE", help="Reset to the offsets in a CSV file.")
        made.set_defaults(shift_by=None, by_duration=None)


TOOL: Final = GroupTool(
    "groups",
    DESCRIPTION,
    listing="List all consumer groups.",
    describing="Describe groups and their lag.",
    deleting="Delete groups with their offsets.",
    resetting="Set the offsets of inactive groups.",
)


def parser() -> argparse.ArgumentParser:
    """The options of kafka-consumer-groups.sh."""
    made = TOOL.parser()
    made.add_argument("--type", nargs="?", const="", metavar="TYPES", help="With --list: show the type.")
    return made


def checked(options: argparse.Namespace) -> str | None:
    """The action, with its groups in ``options.group``. Raises UsageError."""
    # Kafka: ConsumerGroupCommandOptions.checkArgs.
    action = chosen_action(options, ACTIONS)
    if action is None:
        return None
    if action == "--delete" and options.topic:
        raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if action == "--delete-offsets" and not (options.group and options.topic):
        raise UsageError("Option --delete-offsets takes the following options: --group, --topic")
    if action == "--reset-offsets":
        check_plan(options)
        if options.dry_run and options.execute:
            raise UsageError("Option --reset-offsets only accepts one of --execute and --dry-run")
    return action


def check_plan(options: argparse.Namespace) -> None:
    """Raise UsageError for a file of ``--from-file`` that is wrong, before anything is asked."""
    if options.from_file is not None:
        from rejoin.client.commands.groups.parsing import read_plan  # noqa: PLC0415 (help can do without)

        read_plan(options.from_file, options.group)


def chosen_action(options: argparse.Namespace, actions: Sequence[str]) -> str | None:
    """The one action, with its groups in ``options.group``; none if nothing is asked for. Raises UsageError."""
    given = [action for action in actions if _given(options, action)]
    if not given and not any(vars(options)[name] for name in ("group", "topic", "all_groups")):
        return None
    if len(given) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(actions)}")
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
