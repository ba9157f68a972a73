"""`rejoin reassign` and `rejoin elect`: kafka-reassign-partitions.sh and kafka-leader-election.sh.

    rejoin reassign --generate --topics-to-move-json-file topics.json --broker-list 2,3
    rejoin reassign --execute --reassignment-json-file moves.json
    rejoin elect --election-type preferred --all-topic-partitions

Options, output and wording are those of the originals. Differs: errors of the command line, of its files and of the
connection are one line on the standard error, and a wrong command line or file ends with exit code 2; no stack trace
follows an error; lists are sorted; replicas move to brokers and not between directories of one: ``log_dirs`` has
``any`` alone, also where the original prints the directories of today's replicas.

Source: Kafka's ReassignPartitionsCommand and LeaderElectionCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.replicas import options
from rejoin.client.commands.tools.command import ToolCommand

_PACKAGE: Final = "rejoin.client.commands.replicas"
_REASSIGN: Final = ToolCommand(
    "reassign", options.reassign_parser, options.checked_reassignment, f"{_PACKAGE}.reassigning"
)
_ELECT: Final = ToolCommand("elect", options.elect_parser, options.checked_election, f"{_PACKAGE}.electing")

reassign_main: Final = _REASSIGN.main
elect_main: Final = _ELECT.main
reassign_app: Final = _REASSIGN.app()
elect_app: Final = _ELECT.app()
