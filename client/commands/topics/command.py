"""`rejoin topics`: kafka-topics.sh, over Kafka's own requests.

    rejoin topics --bootstrap-server 127.0.0.1:9092 --create --topic orders --partitions 3
    rejoin topics --describe

Options, output and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, and a wrong command line ends with exit code 2.

Source: Kafka's TopicCommand (tools).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.arguments import RunAction, run_tool
from rejoin.client.commands.topics.options import DESCRIPTION, checked, parser

app: Final = App(name="topics", help=DESCRIPTION, help_flags=[], version_flags=[])


@app.default
def topics(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """List, create, describe, alter and delete topics, as kafka-topics.sh does."""
    return main(tokens)


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    return run_tool(parser(), checked, _actions, arguments)


def _actions() -> RunAction:
    from rejoin.client.commands.topics.actions import run_action  # noqa: PLC0415 (help can do without)

    return run_action
