"""The options of kafka-configs.sh for users, clients and ips, and which of them go together.

Source: Kafka's ConfigCommand.ConfigCommandOptions (tools).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.client.commands.tools.arguments import ArgumentParser, UsageError
from rejoin.protocol.security.names import DEFAULT

ACTIONS: Final = ("--describe", "--alter")
TYPES: Final = ("users", "clients", "ips")
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
RATES: Final[tuple[str, ...]] = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
CONNECTION_RATES: Final[tuple[str, ...]] = ("connection_creation_rate",)
FLAGS: Final = (("client", "clients"), ("user", "users"), ("ip", "ips"))
"""Options that name an entity at once, in the order in which Kafka's tool looks at them."""


@dataclass(frozen=True, slots=True)
class EntityTool:
    """One of the two commands: its name, and the types of entities that it is about."""

    name: str
    description: str
    types: tuple[str, ...]

    def parser(self) -> argparse.ArgumentParser:
        """The options of kafka-configs.sh for these types."""
        made = ArgumentParser(self.name, self.description)
        made.add_server()
        add = made.add_argument
        add("--describe", action="store_true", help="Show what is set.")
        add("--alter", action="store_true", help="Change what is set.")
        kinds = ", ".join(self.types)
        add("--entity-type", action="append", default=[], metavar="TYPE", help=f"Type of the entity: {kinds}.")
        add("--entity-name", action="append", default=[], metavar="NAME", help="Name of the entity, for each type.")
        default = "The default of a type, in place of a name."
        add("--entity-default", action="append_const", dest="entity_name", const=DEFAULT, help=default)
        for word, kind in FLAGS:
            if kind in self.types:
                add(f"--{word}", metavar="NAME", help=f"Short for --entity-type {kind} --entity-name NAME.")
                short = f"Short for --entity-type {kind} --entity-default."
                add(f"--{word}-defaults", action="store_true", help=short)
        pairs = "What to set, as NAME=VALUE,... with square brackets around a value that has commas."
        add("--add-config", metavar="PAIRS", help=pairs)
        add("--add-config-file", metavar="FILE", help="Properties file with what to set; it keeps passwords private.")
        add("--delete-config", metavar="NAMES", help="What to remove, as NAME,...")
        made.add_connection()
        made.set_defaults(tool=self)
        return made

    def checked(self, options: argparse.Namespace) -> str | None:
        """The action, or none where nothing was given; entities are in ``options.entities``. Raises UsageError."""
        # Kafka: ConfigCommandOptions.checkArgs.
        given = [action for action in ACTIONS if getattr(options, action.removeprefix("--"))]
        types, names = self._entities(options)
        if not given and not types:
            return None
        if len(given) != 1:
            raise UsageError(f"Command must include exactly one action: {', '.join(ACTIONS)}")
        action = given[0]
        if not types and len(self.types) == 1:
            types = list(self.types)
        self._check_types(types)
        if len(names) > len(types):
            raise UsageError("More entity names specified than entity types")
        if not types and action == "--alter":
            raise UsageError("At least one entity type must be specified")
        if action == "--alter" and len(names) < len(types):
            raise UsageError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
                if not names
                else "An entity name must be specified for every entity type"
            )
        options.entities = [(kind, name) for kind, name in zip(types, [*names, *[None] * len(types)], strict=False)]
        if action == "--alter":
            self._read_changes(options, types)
        elif options.add_config or options.add_config_file or options.delete_config:
            raise UsageError("Options --add-config, --add-config-file and --delete-config are for --alter")
        return action

    def _entities(self, options: argparse.Namespace) -> tuple[list[str], list[str]]:
        flags = [(kind, getattr(options, word, None)) for word, kind in FLAGS]
        flags += [(kind, DEFAULT) for word, kind in FLAGS if getattr(options, f"{word}_defaults", False)]
        named = [(kind, name) for kind, name in flags if name is not None]
        if not named:
            return list(options.entity_type), list(options.entity_name)
        if options.entity_type or options.entity_name:
            text = "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
            raise UsageError(text)
        return [kind for kind, _ in named], [name for _, name in named]

    def _check_types(self, types: Sequence[str]) -> None:
        for kind in types:
            if kind not in self.types:
                more = "; rejoin quotas has clients and ips" if kind in TYPES else ""
                raise UsageError(f"Invalid entity type {kind}, expected one of {', '.join(self.types)}{more}")
        twice = [kind for kind in dict.fromkeys(types) if types.count(kind) > 1]
        if twice:
            raise UsageError(f"Duplicate entity type(s) specified: {','.join(twice)}")
        if len(types) > 1 and "ips" in types:
            raise UsageError("Only 'users' and 'clients' entity types may be specified together")

    def _read_changes(self, options: argparse.Namespace, types: Sequence[str]) -> None:
        """Put what shall change into ``options.changes``: values to set, none for names to remove."""
        if options.add_config and options.add_config_file:
            raise UsageError("Only one of --add-config or --add-config-file must be specified")
        if not (options.add_config or options.add_config_file or options.delete_config):
            text = "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            raise UsageError(text)
        added = _in_file(options.add_config_file) if options.add_config_file else _pairs(options.add_config or "")
        deleted = [name.strip() for name in (options.delete_config or "").split(",") if name.strip()]
        for names, verb in ((list(added), "added"), (deleted, "deleted")):
            _check_names(self, types, names, verb)
        options.changes = added | dict.fromkeys(deleted)
        scram = [name for name in options.changes if name in SCRAM]
        if scram and len(scram) < len(options.changes):
            text = "Cannot alter both quota and SCRAM credential configs simultaneously for 'users'"
            raise UsageError(f"{text} using --bootstrap-server.")
        if scram and DEFAULT in dict(options.entities).values():
            text = "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials"
            raise UsageError(f"{text} using --bootstrap-server.")


def _check_names(tool: EntityTool, types: Sequence[str], names: Sequence[str], verb: str) -> None:
    if "ips" in types:
        known: tuple[str, ...] = CONNECTION_RATES
        what = "connection quota configs"
    elif list(types) == ["users"] and tool is USERS:
        known = (*RATES, *SCRAM)
        what = "quota and SCRAM credential configs"
    else:
        known = RATES
        what = "quota configs"
    unknown = [name for name in names if name not in known]
    if unknown:
        more = "; rejoin users changes credentials" if any(name in SCRAM for name in unknown) else ""
        text = f"Only {what} can be {verb} for '{types[0]}' using --bootstrap-server. Unexpected config names:"
        raise UsageError(f"{text} {','.join(unknown)}{more}")


def _pairs(text: str) -> dict[str, str]:
    """The pairs of ``a=1,b=[2,3]``. Raises UsageError."""
    # A comma inside of brackets has a closing one behind it before the next opening one.
    parts = [part for part in re.split(r",(?=[^\]]*(?:\[|$))", text) if part.strip()]
    if any("=" not in part for part in parts):
        form = 'in the format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
        raise UsageError(f"Invalid entity config: all configs to be added must be {form}")
    return {
        name.strip(): value.strip().removeprefix("[").removesuffix("]")
        for name, _, value in (part.partition("=") for part in parts)
    }


def _in_file(path: str) -> dict[str, str]:
    from rejoin.files import read_text  # noqa: PLC0415 (help can do without)

    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise UsageError(f"--add-config-file {path}: {why}; expected a properties file") from None
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))]
    return {name.strip(): value.strip().removeprefix("[").removesuffix("]") for name, _, value in pairs}


QUOTAS: Final = EntityTool(
    "quotas", "Show and change quotas of users, client ids and addresses, as kafka-configs.sh does.", TYPES
)
USERS: Final = EntityTool("users", "Show and change the users of SCRAM, as kafka-configs.sh does.", ("users",))
