"""`rejoin streams`: kafka-streams-groups.sh, over Kafka's own requests.

    rejoin streams --bootstrap-server 127.0.0.1:9095 --describe --group word-count
    rejoin streams --describe word-count     # short form: --group is implied, the server is the default

Options, columns and wording are those of the original of Kafka 4.4. Differs: errors of the command line and of the
connection are one line on the standard error, a wrong command line ends with exit code 2, and rows are in order.

Source: Kafka's StreamsGroupCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.streams_groups.options import checked, parser
from rejoin.client.commands.tools.command import ToolCommand

COMMAND: Final = ToolCommand("streams", parser, checked, "rejoin.client.commands.streams_groups.actions")
main: Final = COMMAND.main
app: Final = COMMAND.app()
