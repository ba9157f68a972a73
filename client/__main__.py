"""`python -m client`: run consumers, and look at groups.

Without a subcommand it runs consumers; each subcommand's module is imported when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cyclopts import App

SUBCOMMANDS = {
    "groups": ("client.groups_command", "List, describe, delete and reset groups, as kafka-consumer-groups.sh does."),
    "account": ("client.account_command", "Count what was processed twice, or never, from the journals of consumers."),
    "assign": ("client.assign_command", "Show who reads what under an assignor, and what moves when a group changes."),
}


def build() -> App:
    """The command line, with the subcommands that are there."""
    app = App(
        name="client",
        help="Consumers that join groups, and tools to look at groups.",
        usage="Usage: client [run] OPTIONS, or client COMMAND [OPTIONS]",
        version_flags=[],
    )
    app.command("client.processes:app", name="run", help="Run a group's consumers. This is what no subcommand means.")
    for name, (module, words) in SUBCOMMANDS.items():
        if find_spec(module) is not None:
            app.command(f"{module}:app", name=name, help=words)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # As with python -m: an assignor may be a module of the directory in which the command is called.
        sys.path.append(str(Path.cwd()))
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0].startswith("-") and given[0] not in {"--help", "-h"}:
        given.insert(0, "run")
    sys.exit(build()(given, result_action="return_value") or 0)


if __name__ == "__main__":
    main()
