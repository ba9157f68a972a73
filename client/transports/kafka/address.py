"""The addresses of brokers, as ``bootstrap.servers`` has them."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

DEFAULT_PORT: Final = 9092


class BrokerAddress(NamedTuple):
    """Host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def broker_address(server: str) -> BrokerAddress:
    """The address in ``HOST:PORT``. Raises ValueError."""
    problem = ValueError(f"not a server: {server!r}; expected HOST:PORT or http://HOST:PORT, a port from 1 to 65535")
    try:
        parts = urlsplit(f"//{server}")
        port = DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        raise problem from None
    if not parts.hostname or port == 0 or parts.path or parts.query or parts.username is not None:
        raise problem
    return BrokerAddress(parts.hostname, port)
