"""`rejoin share-groups`: kafka-share-groups.sh, over Kafka's own requests.

    rejoin share-groups --bootstrap-server 127.0.0.1:9095 --describe --group workers
    rejoin share-groups --describe workers   # short form: --group is implied, the server is the default

Options, columns and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, and a wrong command line ends with exit code 2.

Source: Kafka's ShareGroupCommand (tools).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.arguments import RunAction, run_tool
from rejoin.client.commands.share_groups.options import DESCRIPTION, checked, parser

app: Final = App(name="share-groups", help=DESCRIPTION, help_flags=[], version_flags=[])


@app.default
def share_groups(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> int:
    """List, describe, delete and reset share groups, as kafka-share-groups.sh does."""
    return main(tokens)


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    return run_tool(parser(), checked, _actions, arguments)


def _actions() -> RunAction:
    from rejoin.client.commands.share_groups.actions import run_action  # noqa: PLC0415 (help can do without)

    return run_action
