"""The options of kafka-acls.sh, and which of them go together.

Source: Kafka's AclCommand.AclCommandOptions (tools).
"""

from __future__ import annotations

import argparse
from typing import Final

from rejoin.client.commands.tools.arguments import ArgumentParser, UsageError

DESCRIPTION: Final = "Add, list and remove ACLs, as kafka-acls.sh does."
ACTIONS: Final = ("--list", "--add", "--remove")
PATTERNS: Final = ("ANY", "MATCH", "LITERAL", "PREFIXED")


def parser() -> argparse.ArgumentParser:
    """The options of kafka-acls.sh."""
    made = ArgumentParser("acls", DESCRIPTION)
    made.add_server()
    add = made.add_argument
    add("--list", action="store_true", help="List ACLs.")
    add("--add", action="store_true", help="Add ACLs.")
    add("--remove", action="store_true", help="Remove ACLs.")
    for name, what in (
        ("--topic", "A topic"),
        ("--group", "A group"),
        ("--transactional-id", "A transactional id"),
        ("--delegation-token", "A delegation token"),
        ("--user-principal", "A user, as a resource for operations on its delegation tokens"),
    ):
        metavar = name.removeprefix("--").upper()
        add(name, action="append", default=[], metavar=metavar, help=f"{what}; * is all. May be given several times.")
    add("--cluster", action="store_true", help="The cluster.")
    add(
        "--resource-pattern-type",
        type=str.upper,
        default="LITERAL",
        metavar="TYPE",
        choices=PATTERNS,
        help="LITERAL or PREFIXED; with --list or --remove also ANY, or MATCH for all that concern the names.",
    )
    add("--operation", action="append", default=[], metavar="NAME", help="An operation, such as Read. Default: All.")
    for who, does in (("allow", "may"), ("deny", "must not")):
        principal = f"A principal that {does}, as User:alice; User:* is all."
        add(f"--{who}-principal", action="append", default=[], metavar="PRINCIPAL", help=principal)
        host = f"A host from which it {does}. Default: all."
        add(f"--{who}-host", action="append", default=[], metavar="HOST", help=host)
    add("--principal", action="append", default=[], help="With --list: show the ACLs of this principal alone.")
    add("--producer", action="store_true", help="All that a producer needs for its topics and transactional ids.")
    add("--consumer", action="store_true", help="All that a consumer needs for its topics and groups.")
    add("--idempotent", action="store_true", help="With --producer: idempotence without a transactional id.")
    add("--force", action="store_true", help="With --remove: do not ask.")
    made.add_connection()
    return made


def checked(options: argparse.Namespace) -> str | None:
    """The action, or none where nothing was given. Raises UsageError."""
    # Kafka: AclCommandOptions.checkArgs.
    given = [action for action in ACTIONS if getattr(options, action.removeprefix("--"))]
    if not given and not has_resources(options):
        return None
    if len(given) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(ACTIONS)}.")
    action = given[0]
    if options.principal and action != "--list":
        raise UsageError("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    if options.consumer:
        more = options.cluster or (not options.producer and options.transactional_id)
        if not options.topic or not options.group or more:
            text = "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id"
            raise UsageError(f"{text} option should be specified.")
    if action != "--list" and not has_resources(options):
        kinds = "--topic <topic> or --cluster or --group <group> or --delegation-token <Delegation Token ID>"
        raise UsageError(f"You must provide at least one resource: {kinds}")
    if action == "--add":
        _check_addition(options)
    return action


def has_resources(options: argparse.Namespace) -> bool:
    """Whether any resource is named."""
    named = (options.topic, options.group, options.transactional_id, options.delegation_token, options.user_principal)
    return options.cluster or any(named)


def _check_addition(options: argparse.Namespace) -> None:
    pattern = options.resource_pattern_type
    if pattern not in {"LITERAL", "PREFIXED"}:
        raise UsageError(f"A '--resource-pattern-type' value of '{pattern}' is not valid when adding acls.")
    if not options.allow_principal and not options.deny_principal:
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
