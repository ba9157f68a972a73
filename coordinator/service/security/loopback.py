"""Which addresses only this machine can reach."""

from __future__ import annotations

import socket
from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name by all its addresses."""
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM)}
    except OSError:
        return False
    return host != "" and all(ip_address(address.partition("%")[0]).is_loopback for address in found)
