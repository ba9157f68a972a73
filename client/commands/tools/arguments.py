"""Options that the commands have in common which are tools of Kafka, and errors of their command lines."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

from rejoin.client.commands.server_option import DEFAULT_SERVER
from rejoin.commands import COMMANDS

BOOTSTRAP_HELP: Final = (
    "Where to connect: HOST:PORT for Kafka's protocol, http://HOST:PORT for HTTP. Separate several with commas."
)


class UsageError(Exception):
    """The command line is wrong; the text says what to do."""


class ArgumentParser(argparse.ArgumentParser):
    """A parser of one of Kafka's tools, which raises UsageError."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(
            prog=f"rejoin {command}",
            description=description,
            epilog=COMMANDS[command].epilogue,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        from rejoin.usage_errors import argparse_problem  # noqa: PLC0415 (only where something is wrong)

        raise UsageError(argparse_problem(self, message))

    def add_server(self) -> None:
        """Which cluster."""
        names = ("--bootstrap-server", "--bootstrap")
        self.add_argument(*names, default=DEFAULT_SERVER, metavar="SERVER", help=BOOTSTRAP_HELP)

    def add_connection(self) -> None:
        """Options for connecting to it."""
        add = self.add_argument
        add("--timeout", type=int, default=5_000, metavar="MS", help="How long to wait for an answer, in ms.")
        properties = "Properties file with security.protocol, sasl.mechanism and so on."
        add("--command-config", metavar="FILE", help=properties)
