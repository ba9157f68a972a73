"""Where a node can be reached, by the names of its listeners, in the notation of Kafka's ``advertised.listeners``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Final, NamedTuple

HTTP: Final = "HTTP"
"""The listener of Kafka's JSON over HTTP."""

PLAINTEXT: Final = "PLAINTEXT"
"""The listener of Kafka's own protocol, unless another is named."""

HIGHEST_PORT: Final = 65_535
_LISTENER: Final = re.compile(r"([A-Za-z][A-Za-z0-9_]*)://(\[[0-9A-Fa-f:.%]*\]|[^\s:/\[\],]*):([0-9]{1,5})")
_HOST: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z._-]*|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[0-9A-Za-z._-]+)?")
_IPV4: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})


class ListenerAddress(NamedTuple):
    """The address of one listener."""

    listener: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """Host and port, as clients take them for ``bootstrap.servers``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.listener}://{self.address}"


def addresses_from(text: str) -> tuple[ListenerAddress, ...]:
    """Endpoints from ``NAME://HOST:PORT``, separated by commas; the host may be empty, and stands in brackets if IPv6.

    Raises ``ValueError`` for anything else, and for a name that comes twice.
    """
    found: dict[str, ListenerAddress] = {}
    for part in text.split(",") if text.strip() else ():
        match = _LISTENER.fullmatch(part.strip())
        if match is None or int(match[3]) > HIGHEST_PORT:
            raise ValueError(f"{part.strip()!r}: expected NAME://HOST:PORT, as PLAINTEXT://127.0.0.1:9092")
        name = match[1].upper()
        if name == HTTP or name in found:
            problem = "is the name of the HTTP service" if name == HTTP else "is named twice"
            raise ValueError(f"{part.strip()!r}: {name} {problem}; expected another name")
        found[name] = ListenerAddress(name, match[2].strip("[]"), int(match[3]))
    return tuple(found.values())


def addresses_text(addresses: Iterable[ListenerAddress]) -> str:
    """The text that :func:`addresses_from` reads."""
    return ",".join(map(str, addresses))


def checked_listeners(text: str) -> str:
    """The text of the addresses to listen on. Raises ``ValueError`` where it cannot be read, or two have one port.

    Kafka: SocketServerConfigs.listenerListToEndPoints. An IPv4 address and an IPv6 address may share a port.
    """
    by_port: dict[int, list[ListenerAddress]] = {}
    for each in addresses_from(text):
        if each.port:
            by_port.setdefault(each.port, []).append(each)
    for port, sharing in by_port.items():
        hosts = [each.host for each in sharing]
        is_pair = len(hosts) == 2 and sum(":" in host for host in hosts) == 1
        if len(hosts) > 1 and not (is_pair and any(map(_IPV4.fullmatch, hosts))):
            names = " and ".join(each.listener for each in sharing)
            raise ValueError(f"{names} have the same port, {port}; expected a port of its own for each listener")
    return text


def checked_advertised(text: str) -> str:
    """The text of the addresses to advertise. Raises ``ValueError`` where it cannot be read, or used by clients."""
    for each in addresses_from(text):
        if each.host:
            check_advertised_host(each.host)
    return text


def check_advertised_host(host: str) -> None:
    """Raise ``ValueError`` for what clients cannot connect to.

    Kafka: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Differs: nor can they use IPv6's here.
    """
    if host in _EVERY_ADDRESS:
        raise ValueError(f"{host} stands for every address of this machine; expected one that clients can connect to")
    if _HOST.fullmatch(host) is None or (":" in host and not _is_ipv6(host)):
        raise ValueError(f"{host!r} is no host; expected a host name or an IP address, without a port")


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True
