"""`rejoin acls`, `quotas` and `users` print what Kafka's own tools printed of a real broker."""

from __future__ import annotations

import json

import pytest

from conformance.clients.admin.both_brokers import AUTHORIZED
from conformance.clients.admin.tools import RECORDED
from rejoin.client.commands.acls import options as acls
from rejoin.client.commands.acls.actions import run_action as run_acls
from rejoin.client.commands.entity_configs.actions import run_action as run_configs
from rejoin.client.commands.entity_configs.options import QUOTAS, USERS
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.coordinator.testing import running
from tests.client.commands.security.tools import comparable

REFUSED, WRONG = 1, 2


def of_users_alone(arguments: list[str]) -> bool:
    """Whether kafka-configs.sh is asked about users and nothing else, which is what `rejoin users` is for."""
    others = ("clients", "ips", "--client", "--ip", "--client-defaults", "--ip-defaults")
    return not any(word in others for word in arguments)


async def run(tool: str, arguments: list[str], server: str) -> int:
    entity_tool = USERS if of_users_alone(arguments) else QUOTAS
    parser, checked = (acls.parser, acls.checked) if tool == "acls" else (entity_tool.parser, entity_tool.checked)
    action_of = run_acls if tool == "acls" else run_configs
    try:
        options = parser().parse_args([*arguments, "--bootstrap-server", server])
        action = checked(options)
        return WRONG if action is None else await action_of(action, options)
    except UsageError:
        return WRONG


async def test_outputs_are_those_of_kafkas_tools(capsys: pytest.CaptureFixture[str]) -> None:
    async with running(settings=AUTHORIZED) as coordinator:
        for line in RECORDED.read_text().splitlines():
            entry = json.loads(line)
            tool, *arguments = entry["run"]
            if is_other(arguments):
                continue
            code = await run(tool, arguments, coordinator.url)
            printed = comparable(capsys.readouterr().out)
            # Kafka ends with 1 for a wrong command line, too.
            assert (printed, min(code, REFUSED)) == (comparable(entry["out"]), entry["code"]), entry["run"]


def is_other(arguments: list[str]) -> bool:
    """Whether Rejoin has no such command: those about brokers, and those in ``DIFFERENT``."""
    return bool({"brokers", "--broker", "--broker-defaults"} & set(arguments)) or arguments in DIFFERENT


DIFFERENT = (["--describe"], ["--entity-type", "users"])
"""Commands that end with an error in Kafka for want of an entity type, or show their help in Rejoin."""
