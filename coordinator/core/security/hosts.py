"""Hosts of ACLs: an address, every host, or a range of addresses (CIDR).

Kafka: AclControlManager.validateHostPattern, CidrUtils, which stand on commons-net's SubnetUtils.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from rejoin.coordinator.core.security.resources import ANYTHING

_IPV4_RANGE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_BYTE: Final = 255


def host_problem(host: str) -> str | None:
    """Why no ACL can have this host, or none."""
    if not host:
        return "the host of an ACL is empty: expected an address, a range of addresses, or *"
    if "/" not in host:
        return None
    return None if _range(host) is not None else f"host {host[:100]!r} is no range of addresses, such as 10.0.0.0/8"


def host_matches(pattern: str, host: str) -> bool:
    """Whether the host of an ACL stands for a client's address."""
    if pattern in {ANYTHING, host}:
        return True
    if "/" not in pattern:
        return False
    addresses = _range(pattern)
    if addresses is None:
        return False
    try:
        return ip_address(host.partition("%")[0]) in addresses
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _range(text: str) -> IPv4Network | IPv6Network | None:
    """A range; bits of the host may be set in it, and bytes of an IPv4 address may have leading zeros."""
    if ":" not in text:
        found = _IPV4_RANGE.fullmatch(text)
        if found is None:
            return None
        parts = [int(part) for part in found.groups()]
        if max(parts[:4]) > _BYTE:
            return None
        text = f"{'.'.join(map(str, parts[:4]))}/{parts[4]}"
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
