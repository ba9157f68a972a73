"""Common parts of `rejoin groups` and `rejoin topics`: options, errors of the command line, running an action."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, NoReturn, TypeAlias

from rejoin.client.commands.server_option import DEFAULT_SERVER
from rejoin.commands import COMMANDS
from rejoin.error_lines import refuse

BOOTSTRAP_HELP: Final = (
    "Where to connect: HOST:PORT for Kafka's protocol, http://HOST:PORT for HTTP. Separate several with commas."
)

RunAction: TypeAlias = Callable[[str, argparse.Namespace], Coroutine[None, None, int]]


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
        return refuse(problem)
