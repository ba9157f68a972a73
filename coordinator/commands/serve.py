"""The process that ``rejoin serve`` is: it checks the options, and runs a node."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from rejoin.atomic_file import FileNotWritten, atomic_file, check_writable
from rejoin.coordinator.commands.secret_options import (
    STORE_REFUSED,
    STORE_VARIABLE,
    has_password,
)
from rejoin.coordinator.commands.serve_options import ServeOptions
from rejoin.coordinator.config import Settings, WrongSetting, settings_from, unknown_variables
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.defaults import KAFKA_PORT
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options, StartFailed
from rejoin.coordinator.service.security.control_token import token_from
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.error_lines import refuse
from rejoin.journal.segments import JournalError
from rejoin.posix import allow_many_connections, calm_collector, fast_loop_factory, stop_signals
from rejoin.protocol.brokers.listener_address import HIGHEST_PORT, check_advertised_host
from rejoin.protocol.units import size_bytes

if TYPE_CHECKING:
    from rejoin.coordinator.commands.beside_node import BesideNode
    from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster

_SETTLED_SECONDS: Final = 1.0


def topic_from(text: str) -> InitialTopic:
    """A topic from ``NAME:PARTITIONS[:RECORDS_PER_SECOND]``."""
    name, *numbers = text.split(":")
    try:
        partitions = int(numbers[0])
        rate = float(numbers[1]) if len(numbers) > 1 else None
    except (IndexError, ValueError):
        partitions, rate = 0, None
    if not name or partitions < 1 or len(numbers) > 2 or (rate is not None and not 0 <= rate < math.inf):
        limits = "with at least 1 partition, and 0 or more records a second"
        raise WrongSetting(f"--topic {text}: expected NAME:PARTITIONS or NAME:PARTITIONS:RECORDS_PER_SECOND, {limits}")
    try:
        return InitialTopic(name, partitions, rate)
    except ValueError as problem:
        raise WrongSetting(f"--topic {text}: {problem}") from None


def _topics_from(texts: Iterable[str]) -> tuple[InitialTopic, ...]:
    topics = tuple(map(topic_from, texts))
    names = [topic.name for topic in topics]
    for name in names:
        if names.count(name) > 1:
            raise WrongSetting(f"--topic: {name} is given twice; leave one of them out")
    return topics


def _most_bytes(text: str) -> int:
    try:
        size = size_bytes(text)
    except ValueError as problem:
        raise WrongSetting(f"--max-body-bytes {text}: {problem}") from None
    if size < 1:
        raise WrongSetting(f"--max-body-bytes {text}: expected 1 or more, as no request fits into that")
    return size


def _settings_of_options(given: ServeOptions) -> dict[str, tuple[str, str]]:
    """The settings that options stand for, by name: each with its option and the value."""
    settings = {
        "emulator.as.kafka": ("--as-kafka", given.as_kafka),
        "emulator.tls.self.signed": ("--tls-self-signed", "true" if given.tls_self_signed else None),
        "emulator.tls.ca.file": ("--tls-ca-file", given.tls_ca_file),
        "emulator.users.file": ("--users-file", given.users_file),
        "emulator.insecure": ("--insecure", "true" if given.insecure else None),
    }
    return {name: (option, str(value)) for name, (option, value) in settings.items() if value is not None}


def _checked_settings(given: ServeOptions) -> Settings:
    settings = settings_from(given.config, os.environ, _settings_of_options(given))
    if given.kafka_port.strip() and settings.listeners:
        raise WrongSetting(
            f"--kafka-port {given.kafka_port}: expected --kafka-port or listeners={settings.listeners}, not both"
        )
    # Not refused: Kubernetes sets REJOIN_PORT and others in the pods beside a service named rejoin.
    if unknown := unknown_variables(os.environ):
        problem = "there is no such setting; docs/settings.md lists all"
        structlog.get_logger("coordinator").warning("variables_ignored", variables=unknown, problem=problem)
    return settings


def _check_advertised_host(host: str | None) -> None:
    try:
        if host is not None:
            check_advertised_host(host)
    except ValueError as problem:
        raise WrongSetting(f"--advertised-host: {problem}") from None


def _kafka_port_from(given: ServeOptions) -> int | None:
    text = given.kafka_port.strip().lower()
    if text in {"", "off"}:
        free = 0 if given.port == 0 else KAFKA_PORT
        return None if text else free
    if not text.isdecimal() or not text.isascii() or int(text) > HIGHEST_PORT:
        raise WrongSetting(f"--kafka-port {given.kafka_port}: expected 0 to {HIGHEST_PORT}, or off")
    return int(text)


def _control_from(given: ServeOptions, token: str | None) -> ControlOptions | None:
    if given.control:
        return ControlOptions(token, given.clock)
    if given.clock != "real":
        raise WrongSetting(f"--clock {given.clock}: expected --control, too; without it a node has the real clock")
    return None


def _token_from(given: ServeOptions) -> str | None:
    """The token of the control API. The option wins over the environment."""
    try:
        return token_from(given.control_token_file)
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None


def run(given: ServeOptions, command: Sequence[str] = ()) -> int:
    """Run a node until SIGTERM or SIGINT, or until the command ends, and return the exit code."""
    beside = None
    if command:
        from rejoin.coordinator.commands.beside_node import BesideNode  # noqa: PLC0415 (most nodes are alone)

        beside = BesideNode(command, given.evidence)
        given = beside.options(given)
    logs.configure(given.log_level)
    try:
        options = options_from(given)
        with asyncio.Runner(loop_factory=fast_loop_factory()) as runner:
            return runner.run(_serve(options, given, beside))
    except (WrongSetting, StartFailed, StoreProblem, JournalError, FileNotWritten, OSError) as problem:
        return refuse(problem)
    finally:
        if beside is not None:
            beside.end()


def options_from(given: ServeOptions) -> Options:
    """Options of a node, from command line and environment. Raises :class:`WrongSetting`."""
    if not 0 <= given.port <= HIGHEST_PORT:
        raise WrongSetting(f"--port {given.port}: expected 0 to {HIGHEST_PORT}")
    for name, folder in (("--journal", given.journal), ("--data", given.data)):
        # As a path it would be this directory, and a variable that is not set is not meant so.
        if folder == "":
            raise WrongSetting(f"{name} '': expected the name of a directory, as . for this one")
    for name, file in (
        ("--port-file", given.port_file),
        ("--kafka-port-file", given.kafka_port_file),
        ("--ready-file", given.ready_file),
    ):
        if file is not None:
            check_writable(name, file)
    token = _token_from(given)
    _check_advertised_host(given.advertised_host)
    return Options(
        settings=_checked_settings(given),
        host=given.host,
        port=given.port,
        kafka_port=_kafka_port_from(given),
        advertised_host=given.advertised_host,
        journal=None if given.journal is None else Path(given.journal),
        data=None if given.data is None else Path(given.data),
        store=_store_from(given),
        topics=_topics_from(given.topic),
        max_body_bytes=_most_bytes(given.max_body_bytes),
        control=_control_from(given, token),
        token=token,
    )


def _store_from(given: ServeOptions) -> str | None:
    if given.store == "":
        raise WrongSetting("--store '': expected the address of a database, as postgresql://HOST/DATABASE")
    if given.store is not None and has_password(given.store):
        raise WrongSetting(STORE_REFUSED)
    store = given.store or os.environ.get(STORE_VARIABLE)
    if store is not None and given.data is not None:
        other = "--store" if given.store else f"{STORE_VARIABLE} in the environment"
        raise WrongSetting(f"--data {given.data}: expected --data or {other}, not both")
    return store


async def _serve(options: Options, given: ServeOptions, beside: BesideNode | None) -> int:
    allow_many_connections()
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    with stop_signals(loop, done.set):
        return await _serve_until(done, options, given, beside)


async def _serve_until(done: asyncio.Event, options: Options, given: ServeOptions, beside: BesideNode | None) -> int:
    loop = asyncio.get_running_loop()
    node: App | BrokerCluster = App(options) if given.brokers == 1 else _cluster(options, given.brokers)
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(done.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # It may wait for its store for a long time.
        starting.cancel()
        await asyncio.wait((starting,))
    if starting.cancelled():
        structlog.get_logger("coordinator").info("stopped", started=False)
        return 0
    starting.result()
    nodes = [node] if isinstance(node, App) else node.apps
    try:
        # Not at once: it costs a twentieth of the start, and a client may be waiting for that.
        loop.call_later(_SETTLED_SECONDS, calm_collector)
        if given.kafka_port_file is not None:
            with atomic_file("--kafka-port-file", given.kafka_port_file) as handle:
                handle.write("".join(f"{each.endpoints[0].port}\n" for each in nodes if each.endpoints))
        if given.port_file is not None:
            with atomic_file("--port-file", given.port_file) as handle:
                handle.write("".join(f"{each.port}\n" for each in nodes))
        if given.ready_file is not None:
            from rejoin.coordinator.commands.ready_file import publish  # noqa: PLC0415 (and few have readers of it)

            publish(nodes, given.ready_file)
        if beside is not None:
            return await beside.run(node)
        await stopping
        return 0
    finally:
        stopping.cancel()
        await node.stop()


def _cluster(options: Options, brokers: int) -> BrokerCluster:
    # Imported here: most processes are one node.
    from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster  # noqa: PLC0415

    return BrokerCluster(options, brokers)
