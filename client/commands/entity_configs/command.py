"""`rejoin quotas` and `rejoin users`: kafka-configs.sh for clients, users and ips, over Kafka's own requests.

    rejoin quotas --alter --entity-type users --entity-name alice --add-config producer_byte_rate=1000000
    rejoin quotas --describe
    rejoin users --describe --entity-name alice

Options, output and wording are those of the original. Differs: errors of the command line and of the connection are
one line on the standard error, a wrong command line ends with exit code 2, lines are sorted, ``quotas`` shows quotas
alone and without an entity type all of them, and ``users`` needs no entity type.

Source: Kafka's ConfigCommand (tools).
"""

from __future__ import annotations

from typing import Final

from rejoin.client.commands.entity_configs.options import QUOTAS, USERS, EntityTool
from rejoin.client.commands.tools.command import ToolCommand


def _command(tool: EntityTool) -> ToolCommand:
    actions = "rejoin.client.commands.entity_configs.actions"
    return ToolCommand(tool.name, tool.parser, tool.checked, actions)


quotas_main: Final = _command(QUOTAS).main
users_main: Final = _command(USERS).main
quotas_app: Final = _command(QUOTAS).app()
users_app: Final = _command(USERS).app()
