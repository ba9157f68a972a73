"""What the command lines of `rejoin groups` and `rejoin topics` share: options, their errors, and running an action."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, NoReturn, TypeAlias

from rejoin.client.commands.error_lines import print_error
from rejoin.commands import COMMANDS

DEFAULT_SERVER: Final = "http://127.0.0.1:9095"
BOOTSTRAP_HELP: Final = "HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP; several with commas."

RunAction: TypeAlias = Callable[[str, argparse.Namespace], Coroutine[None, None, int]]


class UsageError(Exception):
    """The command line makes no sense."""


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
        raise UsageError(message)

    def add_server(self) -> None:
        """Which cluster."""
        names = ("--bootstrap-server", "--bootstrap")
        self.add_argument(*names, default=DEFAULT_SERVER, metavar="SERVER", help=BOOTSTRAP_HELP)

    def add_connection(self) -> None:
        """How to speak with it."""
        add = self.add_argument
        add("--timeout", type=int, default=5_000, metavar="MS", help="How long to wait for an answer.")
        properties = "Properties file with security.protocol, sasl.mechanism and so on."
        add("--command-config", metavar="FILE", help=properties)


def run_tool(
    parser: argparse.ArgumentParser,
    checked: Callable[[argparse.Namespace], str | None],
    load: Callable[[], RunAction],
    arguments: Sequence[str],
) -> int:
    """Run one command; its exit code. ``checked`` finds the action; help can do without what ``load`` imports."""
    try:
        options = parser.parse_args(arguments)
        action = checked(options)
        if action is None:
            parser.print_help()
            return 0
        return asyncio.run(load()(action, options))
    except UsageError as problem:
        print_error(problem)
        print("--help lists the options.", file=sys.stderr)
        return 1
