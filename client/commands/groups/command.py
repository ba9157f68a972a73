"""`rejoin groups`: kafka-consumer-groups.sh, over Kafka's own requests.

    rejoin groups --bootstrap-server 127.0.0.1:9095 --describe --group orders
    rejoin groups --describe orders          # short form: --group is implied, the server is the default

Options, columns and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, and a wrong command line ends with exit code 2.

Source: Kafka's ConsumerGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.arguments import RunAction, run_tool
from rejoin.client.commands.groups.options import DESCRIPTION, checked, parser

app: Final = App(
    name="groups",
    help=DESCRIPTION,
    help_flags=[],
    version_flags=[],
)


@app.default
def groups(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """List, describe, delete and reset groups, as kafka-consumer-groups.sh does."""
    return main(tokens)


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    return run_tool(parser(), checked, _actions, arguments)


def _actions() -> RunAction:
    from rejoin.client.commands.groups.actions import run_action  # noqa: PLC0415 (help can do without)

    return run_action
