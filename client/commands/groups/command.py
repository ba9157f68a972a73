"""`rejoin groups`: kafka-consumer-groups.sh, over Kafka's own requests.

    rejoin groups --bootstrap-server 127.0.0.1:9095 --describe --group orders
    rejoin groups --describe orders          # short form: --group is implied, the server is the default

Options, columns and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, and a wrong command line ends with exit code 2.

Source: Kafka's ConsumerGroupCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.groups.options import checked, parser
from rejoin.client.commands.tools.command import ToolCommand

COMMAND: Final = ToolCommand("groups", parser, checked, "rejoin.client.commands.groups.actions")
main: Final = COMMAND.main
app: Final = COMMAND.app()
