"""`rejoin groups`: kafka-consumer-groups.sh, over Kafka's own requests.

    rejoin groups --bootstrap-server 127.0.0.1:9095 --describe --group orders
    rejoin groups --describe orders          # the same: the group may follow, and the server has a default

Options, columns and wording are those of the original. Exit code 1: the command line made no sense.

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
