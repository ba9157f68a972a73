"""Hosts of ACLs: an address, every host, or a range of addresses (CIDR).

Kafka: AclControlManager.validateHostPattern, CidrUtils, which stand on commons-net's SubnetUtils.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from rejoin.coordinator.core.security.resources import ANYTHING

_IPV4_RANGE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_IPV6_RANGE: Final = re.compile(r"(\[?)([0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(?:%\d+)?(\]?)/\+?(\d+)", re.ASCII)
_LEADING_ZEROS: Final = re.compile(r"^0+(?=[0-9A-Fa-f])")
_LONGEST_GROUP: Final = 5
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
    """A range; bits of the host may be set in it."""
    return _ipv6_range(text) if ":" in text else _ipv4_range(text)


def _ipv4_range(text: str) -> IPv4Network | None:
    """A range whose bytes may have leading zeros."""
    found = _IPV4_RANGE.fullmatch(text)
    if found is None:
        return None
    *parts, bits = map(int, found.groups())
    if max(parts) > _BYTE:
        return None
    try:
        return IPv4Network(f"{'.'.join(map(str, parts))}/{bits}", strict=False)
    except ValueError:
        return None


def _ipv6_range(text: str) -> IPv6Network | None:
    """A range whose address may be in brackets, and have leading zeros and the number of an interface.

    Addresses of IPv4 in it are none of IPv6 to Java.
    """
    found = _IPV6_RANGE.fullmatch(text)
    if found is None or bool(found[1]) != bool(found[3]) or len(found[4]) > _LONGEST_GROUP:
        return None
    separated = re.split(r"([:.])", found[2])
    if max(map(len, separated)) > _LONGEST_GROUP:
        return None
    try:
        address = IPv6Address("".join(_LEADING_ZEROS.sub("", part) for part in separated))
        addresses = IPv6Network((address, int(found[4])), strict=False)
    except ValueError:
        return None
    return None if address.ipv4_mapped is not None else addresses
