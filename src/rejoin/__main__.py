"""``rejoin``, or ``python -m rejoin``: one command. Each subcommand imports what it needs when it is called."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cyclopts import App

COMMANDS: Final = {
    "serve": ("coordinator.commands.serve:run", "Run a coordinator."),
    "consume": ("client.commands.consume:app", "Run a group's consumers."),
    "groups": (
        "client.commands.groups:app",
        "List, describe, delete and reset groups, as kafka-consumer-groups.sh does.",
    ),
    "assign": (
        "client.commands.assign:app",
        "Show who reads what under an assignor, and what moves when a group changes.",
    ),
    "account": ("client.commands.account:app", "Count the records that were processed twice, or never, from journals."),
    "log": ("coordinator.commands.log.command:app", "Read, check, copy and fill an offsets log, offline."),
    "simulate": ("simulation.commands:run", "Play a scenario on a virtual clock."),
    "search": (
        "simulation.commands:search",
        "Play random scenarios with random faults, and check what must never happen.",
    ),
    "gallery": ("simulation.commands:gallery_app", "Scenarios that come along, each named for what it answers."),
    "report": ("pipeline.commands.report:report", "Explain what happened, from journals and brokers' logs."),
    "sweep": ("pipeline.commands.sweep:sweep", "Play a grid of settings and seeds, and rank the settings."),
    "watch": ("pipeline.commands.watch:watch", "Follow running services."),
    "journal-schema": (
        "coordinator.commands.serve:print_journal_schema",
        "Print the JSON Schema of the journal's rows.",
    ),
}
"""Each subcommand with the place of its app and one line of help."""


def build() -> App:
    """The command line. Nothing of a subcommand is imported here."""
    app = App(
        name="rejoin",
        help="Kafka's group coordinator, consumers and a virtual clock; and why a group rebalanced.",
        version=lambda: version("rejoin"),
    )
    for name, (target, words) in COMMANDS.items():
        app.command(f"rejoin.{target}", name=name, help=words)
    app.register_install_completion_command()
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand and exit with its code."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # As with python -m: an assignor may be a module of the directory in which the command is called.
        sys.path.append(str(Path.cwd()))
    # Collecting garbage while modules load finds none and costs a tenth of the start.
    gc.disable()
    app = build()
    gc.enable()
    sys.exit(app(sys.argv[1:] if arguments is None else arguments, result_action="return_value") or 0)


if __name__ == "__main__":
    main()
