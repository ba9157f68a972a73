"""The brokers of the cluster, and the port of the proxy that stands for each."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.service.kafka.binding import listening_socket
from rejoin.protocol.brokers.listener_address import HIGHEST_PORT

MOST_BROKERS: Final = 1_000
"""Brokers that get a listener. A cluster that names more is not believed."""

BOOTSTRAP: Final = -1
"""The node id of the listener that clients find first."""


_LONGEST_HOST: Final = 255
"""Characters of a name in DNS."""


class WrongBrokers(Exception):
    """An answer names brokers that the proxy cannot stand for."""


class TooManyBrokers(WrongBrokers):
    """The cluster names more brokers than there can be listeners."""


@dataclass(slots=True)
class BrokerRoute:
    """A listener, and where the broker behind it is. The first listener may try several addresses."""

    node_id: int
    upstream: list[tuple[str, int]]
    local_port: int
    sock: socket.socket = field(repr=False)
    tries: int = 0
    """How often a connection to the broker could not be opened; the next try takes the next address."""
    failures: int = 0
    """Tries that failed since the last connection."""

    def address(self) -> tuple[str, int]:
        """The address to try now."""
        return self.upstream[self.tries % len(self.upstream)]


class BrokerTable:
    """One listener for each broker that an answer has named, made when it is named first.

    The broker of id N gets the first listener's port + 1 + N where that is free, so that ports are the same after a
    restart; else any free port.
    """

    def __init__(
        self,
        host: str,
        port: int,
        advertised_host: str,
        bootstrap: list[tuple[str, int]],
        listen: Callable[[BrokerRoute], None],
    ) -> None:
        """Binds the first listener. ``listen`` accepts connections on a route. Raises ``ValueError``."""
        self._host = host
        self.advertised_host = advertised_host
        self._listen = listen
        sock = listening_socket(host, port)
        self.first = BrokerRoute(BOOTSTRAP, list(bootstrap), sock.getsockname()[1], sock)
        self._first_port = port
        self.by_id: dict[int, BrokerRoute] = {}

    def routes(self) -> list[BrokerRoute]:
        """Every route, the first listener's in front."""
        return [self.first, *self.by_id.values()]

    def local(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """The host and port at which clients reach this broker. Raises :class:`WrongBrokers`."""
        if not 0 < port <= HIGHEST_PORT or not 0 < len(host) <= _LONGEST_HOST:
            raise WrongBrokers(f"broker {node_id} is at {host[:_LONGEST_HOST]!r}, port {port}; expected an address")
        route = self.by_id.get(node_id)
        if route is None:
            route = self._open(node_id, host, port)
        elif route.upstream[0] != (host, port):
            route.upstream[0] = (host, port)
        return self.advertised_host, route.local_port

    def _open(self, node_id: int, host: str, port: int) -> BrokerRoute:
        if len(self.by_id) >= MOST_BROKERS:
            raise TooManyBrokers(f"the cluster names more than {MOST_BROKERS:,} brokers")
        try:
            sock = self._socket(node_id)
        except ValueError as problem:
            raise TooManyBrokers(f"no listener for broker {node_id}: {problem}") from None
        route = self.by_id[node_id] = BrokerRoute(node_id, [(host, port)], sock.getsockname()[1], sock)
        self._listen(route)
        return route

    def _socket(self, node_id: int) -> socket.socket:
        wanted = self._first_port + 1 + node_id
        if self._first_port and wanted <= HIGHEST_PORT:
            try:
                return listening_socket(self._host, wanted)
            except ValueError:
                pass
        return listening_socket(self._host, 0)

    def close(self) -> None:
        """Give the ports back."""
        for route in self.routes():
            route.sock.close()
