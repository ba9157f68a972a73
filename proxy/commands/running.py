"""One run of ``rejoin proxy``: checks what is wanted, listens, and ends with a signal."""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.transports.kafka.address import broker_address
from rejoin.client.transports.security import kafka_security
from rejoin.coordinator.config import Settings, WrongSetting, settings_from
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.security.control_token import check_token, token_from
from rejoin.coordinator.service.security.loopback import is_loopback
from rejoin.error_lines import refuse
from rejoin.posix import allow_many_connections, calm_collector, fast_loop_factory, stop_signals
from rejoin.protocol.brokers.listener_address import HIGHEST_PORT, check_advertised_host
from rejoin.protocol.brokers.releases import newest_versions
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.listeners.client_login import ClientProtection
from rejoin.proxy.service import Proxy, ProxyOptions
from rejoin.proxy.watch import RequestWatch

REQUEST_LOG: Final = "kafka-request.log"
"""The file in the journal's folder."""
_VARIABLES: Final = ("REJOIN_SSL_KEY_PASSWORD", "REJOIN_EMULATOR_USERS")
"""Secrets of the listeners, which come from the environment alone."""


class WrongProxyOption(ValueError):
    """An option that cannot be used, in words for people."""


@dataclass(frozen=True)
class WantedControl:
    """The options of the control API."""

    port: int
    token_file: Path | None = None


@dataclass(frozen=True)
class WantedProtection:
    """The options of TLS and logins of the proxy's own listeners."""

    config: tuple[str, ...] = ()
    tls_self_signed: bool = False
    tls_ca_file: Path | None = None
    users_file: Path | None = None
    insecure: bool = False

    def settings(self) -> Settings:
        """The settings that these are. Raises ``ValueError``."""
        options = {
            "emulator.tls.self.signed": ("--tls-self-signed", "true" if self.tls_self_signed else ""),
            "emulator.tls.ca.file": ("--tls-ca-file", str(self.tls_ca_file or "")),
            "emulator.users.file": ("--users-file", str(self.users_file or "")),
            "emulator.insecure": ("--insecure", "true" if self.insecure else ""),
        }
        variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        try:
            return settings_from(self.config, variables, {name: each for name, each in options.items() if each[1]})
        except WrongSetting as problem:
            raise WrongProxyOption(str(problem)) from None


@dataclass(frozen=True)
class WantedProxy:
    """The options of the command."""

    bootstrap_server: str
    listen: str
    advertised_host: str = ""
    command_config: str | None = None
    journal: Path | None = None
    as_kafka: str = ""
    drain_seconds: float = 10.0
    control: WantedControl | None = None
    protection: WantedProtection = WantedProtection()


def main(wanted: WantedProxy) -> int:
    """Run until a signal; the exit code."""
    logs.configure("info")
    try:
        options = proxy_options(wanted)
        control = None if wanted.control is None else _control(wanted.control, options)
        with asyncio.Runner(loop_factory=fast_loop_factory()) as runner:
            runner.run(_serve(options, _watch(wanted.journal), control))
    except (WrongProxyOption, WrongOption, ValueError) as problem:
        return refuse(problem)
    return 0


def proxy_options(wanted: WantedProxy) -> ProxyOptions:
    """The options, checked. Raises ``ValueError``."""
    bootstrap = tuple(_address("--bootstrap-server", each) for each in wanted.bootstrap_server.split(","))
    host, port = _listen(wanted.listen)
    if wanted.advertised_host:
        try:
            check_advertised_host(wanted.advertised_host)
        except ValueError as problem:
            raise WrongProxyOption(f"--advertised-host: {problem}") from None
    if wanted.as_kafka:
        try:
            newest_versions(wanted.as_kafka)
        except ValueError as problem:
            raise WrongProxyOption(f"--as-kafka: {problem}") from None
    security = security_from(wanted.command_config)
    clients = ClientProtection(wanted.protection.settings(), (host, wanted.advertised_host))
    has_login = security.has_sasl or security.ssl_keystore_location
    if has_login and not is_loopback(host):
        clients.check_exposed(host)
    if not 0 <= wanted.drain_seconds < math.inf:
        raise WrongProxyOption(f"--drain-seconds {wanted.drain_seconds}: expected 0 or more seconds")
    return ProxyOptions(
        bootstrap=bootstrap,
        host=host,
        port=port,
        advertised_host=wanted.advertised_host,
        upstream=kafka_security(security),
        clients=clients,
        release=wanted.as_kafka,
        finds_brokers=True,
        drain_seconds=wanted.drain_seconds,
    )


def _address(option: str, text: str) -> tuple[str, int]:
    try:
        found = broker_address(text.strip())
    except ValueError:
        problem = f"not a server: {text!r}; expected HOST:PORT, a port from 1 to 65535"
        raise WrongProxyOption(f"{option}: {problem}") from None
    return found.host, found.port


def _listen(text: str) -> tuple[str, int]:
    """The first listener; port 0 takes any."""
    host, _, port = text.rpartition(":")
    if port == "0" and host:
        return host.strip("[]"), 0
    return _address("--listen", text)


def _watch(folder: Path | None) -> RequestWatch | None:
    """The watch that writes into a folder, which is made."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return RequestWatch(LineFile(folder / REQUEST_LOG))
    except OSError as problem:
        raise WrongProxyOption(f"--journal {folder}: {problem.strerror}; expected a directory to write to") from None


@dataclass(frozen=True)
class ControlPlace:
    """Where the control API is served, and who may use it."""

    host: str
    port: int
    token: str | None


def _control(wanted: WantedControl, options: ProxyOptions) -> ControlPlace:
    """The place of the control API, checked. Raises ``ValueError``."""
    if not 0 <= wanted.port <= HIGHEST_PORT:
        raise WrongProxyOption(f"--control-port {wanted.port}: expected 0 to {HIGHEST_PORT}")
    token = token_from(wanted.token_file)
    check_token(token, options.host, is_served=True)
    return ControlPlace(options.host, wanted.port, token)


async def _serve(options: ProxyOptions, journal: RequestWatch | None, place: ControlPlace | None) -> None:
    allow_many_connections()
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    async with AsyncExitStack() as stack:
        if options.clients is not None:
            stack.callback(options.clients.close)
        if journal is not None:
            stack.callback(journal.close)
        if place is None:
            proxy = Proxy(options, journal)
            await proxy.start()
        else:
            # Imported here: most proxies run without the control API.
            from rejoin.proxy.control.running import controlled_proxy  # noqa: PLC0415

            proxy = await controlled_proxy(stack, options, journal, place.host, place.port, place.token)
        authority = {"tls_ca": options.clients.ca_location} if options.clients and options.clients.ca_location else {}
        structlog.get_logger("proxy").info("proxy_ready", bootstrap_servers=proxy.bootstrap_servers, **authority)
        calm_collector()
        with stop_signals(loop, stopping.set):
            await stopping.wait()
            await proxy.stop(drain=True)
        kept = {} if journal is None else {"journal_unreadable": journal.unreadable, "journal_lost": journal.lost}
        structlog.get_logger("proxy").info("proxy_stopped", **proxy.counters.totals(), **kept)
