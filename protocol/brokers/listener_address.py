"""Where a node can be reached, by the names of its listeners, in the notation of Kafka's ``advertised.listeners``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

HTTP: Final = "HTTP"
"""The listener of Kafka's JSON over HTTP."""

PLAINTEXT: Final = "PLAINTEXT"
"""The listener of Kafka's own protocol, unless another is named."""

HIGHEST_PORT: Final = 65_535
_LISTENER: Final = re.compile(r"([A-Za-z][A-Za-z0-9_]*)://(\[[0-9A-Fa-f:.%]*\]|[^\s:/\[\],]*):([0-9]{1,5})")


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
