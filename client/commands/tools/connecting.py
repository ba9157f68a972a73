"""Connections of commands to their cluster, running an action on it, and the advice when it does not answer."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

from rejoin.client.admin.admin import Admin
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.command import RunAction
from rejoin.client.core.errors import CodedError, KafkaError, KafkaTimeoutError
from rejoin.client.transports.addresses import no_coordinator, open_transport, split_servers
from rejoin.error_lines import print_error
from rejoin.output import print_text

AdminT = TypeVar("AdminT", bound=Admin)
Actions: TypeAlias = Mapping[str, Callable[[AdminT, argparse.Namespace], Awaitable[None]]]


class ToolRefusal(KafkaError):
    """The cluster refused, or the tool by itself; the text is what Kafka's tool prints of it."""


class PartRefused(Exception):
    """A part of the command that could not be done, and was printed; the others were done."""


def runs(
    actions: Actions[AdminT],
    kind: type[AdminT],
    refusal: Callable[[CodedError | ToolRefusal], str] | None = None,
    code: int = 1,
) -> RunAction:
    """A function that runs one of the actions with an admin client of this kind, and returns the exit code.

    A refusal is printed as the tool does it, and ends the command with ``code``; without ``refusal`` it is an error
    like others.
    """

    async def run_action(action: str, options: argparse.Namespace) -> int:
        async with connected(options, kind) as admin:
            try:
                await actions[action](admin, options)
            except PartRefused:
                return code
            except KafkaError as problem:
                if refusal is None or not isinstance(problem, CodedError | ToolRefusal):
                    return failed(problem, options)
                print_text(refusal(problem))
                return code
        return 0

    return run_action


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
