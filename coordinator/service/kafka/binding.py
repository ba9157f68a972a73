"""The sockets of a node, and which addresses the listeners of Kafka's protocol bind and advertise.

Kafka: listeners and advertised.listeners.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv6Address
from typing import TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.defaults import BACKLOG
from rejoin.protocol.brokers.listener_address import ListenerAddress, addresses_from
from rejoin.protocol.brokers.security_protocol import SecurityProtocol

Bound: TypeAlias = list[tuple[ListenerAddress, socket.socket]]
"""Each listener with the address that it advertises, and its socket."""


def wanted(settings: Settings, host: str, port: int | None, protocol: SecurityProtocol) -> tuple[ListenerAddress, ...]:
    """The listeners to bind: those of the settings, else one on ``host`` with this protocol, else none."""
    named = addresses_from(settings.listeners)
    if named or port is None:
        return named
    return (ListenerAddress(protocol.value, host, port),)


def check(listeners: tuple[ListenerAddress, ...], advertised: tuple[ListenerAddress, ...]) -> None:
    """Raise ``ValueError`` when an address is advertised for a listener that is not there."""
    names = [each.listener for each in listeners]
    for each in advertised:
        if each.listener not in names:
            there = ", ".join(names) or "none"
            raise ValueError(f"advertised.listeners: there is no listener {each.listener}; there are: {there}")


def bind(
    listeners: tuple[ListenerAddress, ...],
    advertised: tuple[ListenerAddress, ...],
    advertised_host: str | None,
    option: str,
) -> Bound:
    """Bind every listener or none. Raises ``ValueError``, with the option or setting that names another port."""
    check(listeners, advertised)
    bound: Bound = []
    try:
        for each in listeners:
            try:
                sock = listening_socket(each.host, each.port)
            except ValueError as problem:
                raise ValueError(f"Kafka's protocol: {problem} ({option})") from problem
            port = sock.getsockname()[1]
            shown = next((other for other in advertised if other.listener == each.listener), None)
            host = (shown.host if shown else None) or advertised_host or reachable(each.host)
            bound.append((ListenerAddress(each.listener, host, (shown.port if shown else 0) or port), sock))
    except BaseException:
        for _, sock in bound:
            sock.close()
        raise
    return bound


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, so that nothing else has its port from now on. Raises ``ValueError``.

    An empty host is every IPv4 address of this machine.

    Linux lets two sockets bind one port with SO_REUSEADDR as long as neither listens, and some event loops do not say
    that the second one cannot.
    """
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as problem:
        raise ValueError(f"cannot listen on {shown}: {problem}; expected an address of this machine") from problem
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as problem:
        listener.close()
        raise ValueError(
            f"cannot listen on {shown}: {problem.strerror}; expected an address of this machine and a free port, "
            "or port 0, which takes any"
        ) from problem
    return listener


def reachable(host: str) -> str:
    """The host that clients connect to: this machine's name if every address was bound."""
    return socket.gethostname() if is_wildcard(host) else host


def is_wildcard(host: str) -> bool:
    """Whether a listener on this host accepts connections on every address of this machine."""
    return host in {"0.0.0.0", "::", ""}


def local_host(transport: asyncio.BaseTransport) -> str:
    """The host that a client connected to: the name in its TLS handshake, else this end's address of the connection.

    It is empty where neither is of use to the client: an IPv6 address of one link needs the client's own scope.
    """
    named: str = getattr(transport.get_extra_info("ssl_object"), "server_name", "")
    here = transport.get_extra_info("sockname")
    if named or not isinstance(here, tuple):
        return named
    host = str(here[0])
    if ":" not in host:
        return host
    address = IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return "" if address.is_link_local else host
