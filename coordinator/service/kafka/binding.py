"""Which addresses the listeners of Kafka's protocol bind, and which they advertise.

Kafka: listeners and advertised.listeners.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeAlias

from rejoin.coordinator.config import Settings
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
    bind_to: Callable[[str, int], socket.socket],
    reachable: Callable[[str], str],
) -> Bound:
    """Bind every listener or none. ``bind_to`` binds one; what it raises is raised when the others are closed again."""
    check(listeners, advertised)
    bound: Bound = []
    try:
        for each in listeners:
            sock = bind_to(each.host, each.port)
            port = sock.getsockname()[1]
            shown = next((other for other in advertised if other.listener == each.listener), None)
            host = (shown.host if shown else None) or advertised_host or reachable(each.host)
            bound.append((ListenerAddress(each.listener, host, (shown.port if shown else 0) or port), sock))
    except BaseException:
        for _, sock in bound:
            sock.close()
        raise
    return bound
