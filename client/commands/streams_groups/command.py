"""`rejoin streams`: kafka-streams-groups.sh, over Kafka's own requests.

    rejoin streams --bootstrap-server 127.0.0.1:9095 --describe --group word-count
    rejoin streams --describe word-count     # short form: --group is implied, the server is the default

Options, columns and wording are those of the original of Kafka 4.4. Differs: errors of the command line and of the
connection are one line on the standard error, a wrong command line ends with exit code 2, and rows are in order.

Source: Kafka's StreamsGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.arguments import RunAction, run_tool
from rejoin.client.commands.streams_groups.options import DESCRIPTION, checked, parser

app: Final = App(name="streams", help=DESCRIPTION, help_flags=[], version_flags=[])


@app.default
def streams(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """List, describe, delete and reset streams groups, as kafka-streams-groups.sh does."""
    return main(tokens)


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    return run_tool(parser(), checked, _actions, arguments)


def _actions() -> RunAction:
    from rejoin.client.commands.streams_groups.actions import run_action  # noqa: PLC0415 (help can do without)

    return run_action
