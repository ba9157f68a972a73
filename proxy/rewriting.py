"""Answers that name brokers, rewritten so that clients stay on the proxy.

FindCoordinator and DescribeCluster name brokers in their bodies, as does Metadata (``listeners``); Produce, Fetch,
ShareFetch and ShareAcknowledge name new leaders in NodeEndpoints (KIP-951, KIP-932). A Fetch passes while it arrives,
so its length is out before its end is here: its endpoints are replaced by as many bytes. Where ours do not fit there
are none, and the client asks for Metadata, as it does after the answer of an older broker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

from rejoin.protocol.brokers.releases import newest_versions, oldest_versions
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsResponse
from rejoin.protocol.messages.cluster.describe_cluster import DescribeClusterResponse
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.registry import (
    API_VERSIONS,
    DEFINED,
    DESCRIBE_CLUSTER,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    Api,
)
from rejoin.protocol.wire.codec import Codec
from rejoin.protocol.wire.primitives import write_varint

BROKERS_OF_A_CLUSTER: Final = 1
"""The endpoint type of DescribeCluster that names brokers; the other names controllers."""

_FIRST_ENDPOINTS: Final = {PRODUCE.key: 10, FETCH.key: 16, SHARE_FETCH.key: 0, SHARE_ACKNOWLEDGE.key: 0}
"""The first version of each API whose answers may name the nodes that lead now."""

NAMES_BROKERS: Final = frozenset({METADATA.key, FIND_COORDINATOR.key, DESCRIBE_CLUSTER.key, *_FIRST_ENDPOINTS})
"""APIs whose answers may name brokers, so that no version passes whose form is not known here."""

_LEAST_PADDING: Final = 2
_PADDING_TAGS: Final = (100, 200)
"""Tags that no message has, of one byte and of two."""


class LocalAddresses(Protocol):
    """The addresses at which clients reach brokers through the proxy."""

    def local(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """The host and port at which clients reach this broker, which itself is at ``host`` and ``port``."""


def may_name_endpoints(api: Api, version: int) -> bool:
    """Whether an answer may have NodeEndpoints."""
    return version >= _FIRST_ENDPOINTS.get(api.key, 1 << 15)


def lowered(response: ApiVersionsResponse, release: str) -> ApiVersionsResponse:
    """The versions that are offered through the proxy: the broker's, without those whose answers it cannot rewrite.

    With a ``release`` they are no newer than that of Kafka.
    """
    newest = newest_versions(release) if release else {}
    oldest = oldest_versions(release) if release else {}
    kept: list[ApiVersion] = []
    for each in response.api_keys:
        first, last = each.min_version, each.max_version
        if each.api_key in NAMES_BROKERS or each.api_key == API_VERSIONS.key:
            last = min(last, DEFINED[each.api_key].max_version)
        if release:
            first = max(first, oldest.get(each.api_key, 0))
            last = min(last, newest.get(each.api_key, -1))
        if first <= last:
            same = (first, last) == (each.min_version, each.max_version)
            kept.append(each if same else ApiVersion(api_key=each.api_key, min_version=first, max_version=last))
    if tuple(kept) == response.api_keys:
        return response
    return response.model_copy(update={"api_keys": tuple(kept)})


def rewritten(response: Response, addresses: LocalAddresses) -> Response:
    """The answer with our addresses; itself where it names no broker."""
    change = _CHANGES.get(type(response))
    if change is not None:
        return change(response, addresses)
    endpoints: tuple[NodeEndpoint, ...] = getattr(response, "node_endpoints", ())
    if not endpoints:
        return response
    return response.model_copy(update={"node_endpoints": _endpoints(endpoints, addresses)})


def _endpoints(endpoints: tuple[NodeEndpoint, ...], addresses: LocalAddresses) -> tuple[NodeEndpoint, ...]:
    return tuple(_moved(each, each.node_id, addresses) for each in endpoints)


def _moved(place: Any, node_id: int, addresses: LocalAddresses) -> Any:
    """A part of an answer that names a broker, with our address. Where it names none, as it is."""
    if node_id < 0 or not place.host:
        return place
    host, port = addresses.local(node_id, place.host, place.port)
    return place.model_copy(update={"host": host, "port": port})


def _find_coordinator(response: Any, addresses: LocalAddresses) -> Response:
    if response.coordinators:
        found = tuple(_moved(each, each.node_id, addresses) for each in response.coordinators)
        several: Response = response.model_copy(update={"coordinators": found})
        return several
    one: Response = _moved(response, response.node_id, addresses)
    return one


def _describe_cluster(response: Any, addresses: LocalAddresses) -> Response:
    if response.endpoint_type != BROKERS_OF_A_CLUSTER:
        return response  # type: ignore[no-any-return]
    brokers = tuple(_moved(each, each.broker_id, addresses) for each in response.brokers)
    moved: Response = response.model_copy(update={"brokers": brokers})
    return moved


_CHANGES: Final[dict[type, Callable[[Any, LocalAddresses], Response]]] = {
    FindCoordinatorResponse: _find_coordinator,
    DescribeClusterResponse: _describe_cluster,
}


# --- the end of a message whose length is out already


def rewritten_tail(codec: Codec, response: Any, tail: bytes, addresses: LocalAddresses) -> bytes:
    """As many bytes as the end of an answer has, with our endpoints instead of the broker's.

    ``response`` is the answer without records, and ``tail`` its bytes behind the partitions.
    """
    if not response.node_endpoints:
        return tail
    for endpoints in (_endpoints(response.node_endpoints, addresses), ()):
        ours = _tail_of(codec, endpoints)
        missing = len(tail) - len(ours)
        if missing == 0 or missing >= _LEAST_PADDING:
            # The tail of a Fetch is its tagged fields; in a share answer they follow the array of endpoints.
            return padded(ours, 0 if codec.api is FETCH else len(ours) - 1, missing)
    raise AssertionError("an answer without endpoints is shorter than one with")


@cache
def tail_without_endpoints(codec: Codec) -> bytes:
    """The bytes behind the partitions of an answer that names no leader, as most do."""
    return _tail_of(codec, ())


def _tail_of(codec: Codec, endpoints: tuple[NodeEndpoint, ...]) -> bytes:
    named: Any = codec.api.response
    return codec.write_response(named(node_endpoints=endpoints))[_head_bytes(codec) :]


@cache
def _head_bytes(codec: Codec) -> int:
    """How many bytes of an answer without partitions are in front of its tail."""
    has_array = codec.api in (SHARE_FETCH, SHARE_ACKNOWLEDGE)
    return len(codec.write_response(codec.api.response())) - (2 if has_array else 1)


def padded(tail: bytes, count_at: int, missing: int) -> bytes:
    """The tail, longer by a tagged field of ``missing`` bytes that no client knows.

    Tagged fields end the tail; their count, which is of one byte, is at ``count_at``.
    """
    if not missing:
        return tail
    return tail[:count_at] + bytes((tail[count_at] + 1,)) + tail[count_at + 1 :] + _padding(missing)


def _padding(size: int) -> bytes:
    """A tagged field of so many bytes, two or more."""
    for tag in map(write_varint, _PADDING_TAGS):
        for width in range(1, 6):
            left = size - len(tag) - width
            if left >= 0 and len(write_varint(left)) == width:
                return tag + write_varint(left) + bytes(left)
    raise AssertionError(f"no field of {size} bytes")
