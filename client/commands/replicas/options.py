"""The options of kafka-reassign-partitions.sh and kafka-leader-election.sh, and which of them go together.

Source: Kafka's ReassignPartitionsCommandOptions and LeaderElectionCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.tools.arguments import ArgumentParser, UsageError

ACTIONS: Final = ("--generate", "--execute", "--verify", "--cancel", "--list")
TYPES: Final = ("preferred", "unclean")

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "--generate": ("--topics-to-move-json-file", "--broker-list"),
    "--execute": ("--reassignment-json-file",),
    "--verify": ("--reassignment-json-file",),
    "--cancel": ("--reassignment-json-file",),
    "--list": (),
}
_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "--generate": ("--disable-rack-aware",),
    "--execute": ("--additional", "--throttle", "--replica-alter-log-dirs-throttle"),
    "--verify": ("--preserve-throttles",),
    "--cancel": ("--preserve-throttles",),
    "--list": (),
}
_ALL: Final = tuple(dict.fromkeys(name for table in (_NEEDED, _ALLOWED) for names in table.values() for name in names))
_CHOICES: Final = ("--topic", "--all-topic-partitions", "--path-to-json-file")


def reassign_parser() -> argparse.ArgumentParser:
    """The options of kafka-reassign-partitions.sh."""
    made = ArgumentParser("reassign", "Move replicas of partitions, as kafka-reassign-partitions.sh does.")
    made.add_server()
    add = made.add_argument
    add("--generate", action="store_true", help="Propose replicas for topics, on some brokers. Nothing is moved.")
    add("--execute", action="store_true", help="Begin the reassignment of a file.")
    add("--verify", action="store_true", help="Show how far it is; remove its throttles once it has ended.")
    add("--cancel", action="store_true", help="Cancel what goes on of it, and remove its throttles.")
    add("--list", action="store_true", help="Show all reassignments that go on.")
    moves = "JSON file with partitions and their replicas, as --generate prints it."
    add("--reassignment-json-file", metavar="FILE", help=moves)
    topics = 'JSON file with topics: {"topics": [{"topic": "orders"}], "version": 1}.'
    add("--topics-to-move-json-file", metavar="FILE", help=topics)
    add("--broker-list", metavar="IDS", help="Ids of brokers for --generate, with commas.")
    add("--disable-rack-aware", action="store_true", help="With --generate: take no heed of racks.")
    add("--additional", action="store_true", help="With --execute: also while another reassignment goes on.")
    rate = "With --execute: the throttle between brokers, in bytes/s. It is a setting of topics and brokers."
    add("--throttle", type=int, default=-1, metavar="BYTES", help=rate)
    within = "With --execute: the throttle between directories, in bytes/s."
    add("--replica-alter-log-dirs-throttle", type=int, default=-1, metavar="BYTES", help=within)
    add("--preserve-throttles", action="store_true", help="With --verify and --cancel: leave throttles in place.")
    made.add_connection()
    return made


def checked_reassignment(options: argparse.Namespace) -> str | None:
    """The action, or none where nothing was given. Raises UsageError."""
    # Kafka: ReassignPartitionsCommand.validateAndParseArgs.
    given = [action for action in ACTIONS if _is_given(options, action)]
    others = [name for name in _ALL if _is_given(options, name)]
    if not given and not others:
        return None
    if len(given) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(ACTIONS)}")
    action = given[0]
    missing = [name for name in _NEEDED[action] if name not in others]
    if missing:
        raise UsageError(f"{action} requires {missing[0]}")
    for name in others:
        if name not in (*_NEEDED[action], *_ALLOWED[action]):
            raise UsageError(f"Option {name} can't be used with action {action}")
    if action == "--generate":
        options.brokers = _brokers(options.broker_list)
    return action


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name.removeprefix("--").replace("-", "_"))
    return value not in (None, False, -1)


def _brokers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"--broker-list {text}: expected ids of brokers with commas, such as 1,2,3")
    return [int(word) for word in words]


def elect_parser() -> argparse.ArgumentParser:
    """The options of kafka-leader-election.sh."""
    made = ArgumentParser("elect", "Elect leaders of partitions, as kafka-leader-election.sh does.")
    made.add_server()
    add = made.add_argument
    kinds = "preferred: the first replica, where it is in sync; unclean: any that is alive, where there is no leader."
    add("--election-type", type=str.lower, choices=TYPES, metavar="TYPE", help=kinds)
    add("--topic", metavar="TOPIC", help="The topic of one partition.")
    add("--partition", type=int, metavar="NUMBER", help="The number of the partition, with --topic.")
    add("--all-topic-partitions", action="store_true", help="All partitions of the cluster that need it.")
    add("--path-to-json-file", metavar="FILE", help='JSON file: {"partitions": [{"topic": "orders", "partition": 0}]}.')
    made.add_connection()
    return made


def checked_election(options: argparse.Namespace) -> str | None:
    """The one action that there is, or none where nothing was given. Raises UsageError."""
    # Kafka: LeaderElectionCommandOptions.validate.
    chosen = [name for name in _CHOICES if getattr(options, name.removeprefix("--").replace("-", "_"))]
    if options.election_type is None and options.partition is None and not chosen:
        return None
    if options.election_type is None:
        raise UsageError("Missing required option(s): election-type")
    if len(chosen) != 1:
        raise UsageError(f"One and only one of the following options is required: {', '.join(_CHOICES)}")
    if options.topic and options.partition is None:
        raise UsageError("Missing required option(s): partition")
    if not options.topic and options.partition is not None:
        raise UsageError("Option partition is only allowed if topic is used")
    return "--election-type"
