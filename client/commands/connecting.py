"""Connections of `rejoin groups` and `rejoin topics` to their cluster, and the advice when it does not answer."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from rejoin.client.admin import Admin
from rejoin.client.commands.arguments import UsageError
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.transports.addresses import no_coordinator, open_transport, split_servers
from rejoin.error_lines import print_error

AdminT = TypeVar("AdminT", bound=Admin)


@asynccontextmanager
async def connected(options: argparse.Namespace, kind: type[AdminT]) -> AsyncIterator[AdminT]:
    """An admin client of this kind, as the options say. Raises UsageError."""
    try:
        security = security_from(options.command_config)
        transport = open_transport(split_servers(options.bootstrap_server), security=security)
    except (ValueError, WrongOption) as problem:
        raise UsageError(str(problem)) from None
    try:
        yield kind(transport, options.timeout)
    finally:
        await transport.close()


def failed(problem: KafkaError, options: argparse.Namespace) -> int:
    """Print why the cluster did not do what was asked, with what to do where it did not answer; the exit code."""
    text = str(problem)
    if isinstance(problem, KafkaTimeoutError):
        text = f"{no_coordinator(options.bootstrap_server, text)}, --timeout gives it more time"
    print_error(text)
    return 1
