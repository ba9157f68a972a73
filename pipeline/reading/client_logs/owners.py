"""The groups of consumers whose own logs name none, as librdkafka's do: from what others say of the same clients."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rejoin.pipeline.reading.client_logs.statements import NO_GROUP

UNNAMED: Final = "c:"
"""Prefix of ``about`` for a consumer whose group is not known; the client id follows."""
CLIENT: Final = r'"([^"\\]+?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"|"client_id":"([^"\\]+)"'
_CLIENTS: Final = re.compile(CLIENT)


def named_groups(clients: Iterable[str], rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The ``about`` of each client's group, by the one that it has: the only group in whose rows (``about``, body) a
    client id or a member id that begins with it is found. Where there is none, or several, it is :data:`NO_GROUP`."""
    found: dict[str, set[str]] = {client: set() for client in clients}
    for about, body in rows if found else ():
        for of_member, client in _CLIENTS.findall(body):
            if (name := of_member or client) in found:
                found[name].add(about)
    return {
        f"{UNNAMED}{client}": groups.pop() if len(groups) == 1 else f"g:{NO_GROUP}" for client, groups in found.items()
    }
