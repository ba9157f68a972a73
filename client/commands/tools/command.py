"""One of Kafka's tools as a subcommand of ``rejoin``: the same parts for each of them.

A tool has a package with ``options`` (the parser, and what goes together), ``actions`` (one function for each action of
the command line) and, where it prints tables, ``tables``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, TypeAlias, TypeVar

from cyclopts import App, Parameter

from rejoin.client.commands.tools.arguments import UsageError
from rejoin.commands import COMMANDS
from rejoin.error_lines import refuse

RunAction: TypeAlias = Callable[[str, argparse.Namespace], Awaitable[int]]
AdminT = TypeVar("AdminT")


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A subcommand that is one of Kafka's tools.

    ``checked`` finds the action in the options, or none where there is nothing to do. ``actions`` is the module whose
    ``run_action`` carries it out; help can do without what that imports.
    """

    name: str
    parser: Callable[[], argparse.ArgumentParser]
    checked: Callable[[argparse.Namespace], str | None]
    actions: str

    def main(self, arguments: Sequence[str]) -> int:
        """Run one command; its exit code."""
        parser = self.parser()
        try:
            options = parser.parse_args(arguments)
            action = self.checked(options)
            if action is None:
                parser.print_help()
                return 0
            run_action: RunAction = import_module(self.actions).run_action
            return asyncio.run(_finished(run_action(action, options)))
        except UsageError as problem:
            return refuse(problem)

    def app(self) -> App:
        """The subcommand, which hands all words of the command line to the tool's own parser."""
        app = App(name=self.name, help=COMMANDS[self.name].help, help_flags=[], version_flags=[])

        def run(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
            return self.main(tokens)

        app.default(run)
        return app


async def _finished(running: Awaitable[int]) -> int:
    return await running
