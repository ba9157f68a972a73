"""`rejoin topics`: kafka-topics.sh, over Kafka's own requests.

    rejoin topics --bootstrap-server 127.0.0.1:9092 --create --topic orders --partitions 3
    rejoin topics --describe

Options, output and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, and a wrong command line ends with exit code 2.

Source: Kafka's TopicCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.tools.command import ToolCommand
from rejoin.client.commands.topics.options import checked, parser

COMMAND: Final = ToolCommand("topics", parser, checked, "rejoin.client.commands.topics.actions")
main: Final = COMMAND.main
app: Final = COMMAND.app()
