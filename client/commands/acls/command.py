"""`rejoin acls`: kafka-acls.sh, over Kafka's own requests.

    rejoin acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:billing --operation Read --group billing
    rejoin acls --list

Options, output and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, a wrong command line ends with exit code 2, and what Kafka prints in the order of its
hash maps comes in the order of the command line or sorted.

Source: Kafka's AclCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.acls.options import checked, parser
from rejoin.client.commands.tools.command import ToolCommand

COMMAND: Final = ToolCommand("acls", parser, checked, "rejoin.client.commands.acls.actions")
main: Final = COMMAND.main
app: Final = COMMAND.app()
