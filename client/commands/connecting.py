"""How `rejoin groups` and `rejoin topics` reach their cluster, and what they advise when it does not answer."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rejoin.client.admin import Admin
from rejoin.client.commands.arguments import UsageError
from rejoin.client.commands.error_lines import print_error
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.core.errors import KafkaTimeoutError
from rejoin.client.transports.addresses import no_coordinator, open_transport, split_servers


@asynccontextmanager
async def connected(options: argparse.Namespace) -> AsyncIterator[Admin]:
    """An admin client as the options say. Raises UsageError."""
    try:
        security = security_from(options.command_config)
        transport = open_transport(split_servers(options.bootstrap_server), security=security)
    except (ValueError, WrongOption) as problem:
        raise UsageError(str(problem)) from None
    try:
        yield Admin(transport, options.timeout)
    finally:
        await transport.close()


def advise(problem: Exception, options: argparse.Namespace) -> None:
    """Where the cluster did not answer: say what to do."""
    if isinstance(problem, KafkaTimeoutError):
        advice = no_coordinator(options.bootstrap_server, "--bootstrap-server")
        print_error(f"{advice}, --timeout gives it more time.")
