"""A client's connections to all nodes, two to each: one for requests to a node by its address, one for all others."""

from __future__ import annotations

from typing import Final

from rejoin.client.core.effects import Send
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.network import ClientConnection, Network, NetworkClient

NAMED: Final = 0
ANY: Final = 1


class NodeConnections:
    """Chooses the connection that a core's request takes. A client that ends drops all of them."""

    def __init__(self, client: NetworkClient, network: Network, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._pairs = [[network.connect(client, node, kind) for kind in (NAMED, ANY)] for node in cluster.nodes]

    def to(self, node: int, kind: int) -> ClientConnection:
        """The connection to a node by its index."""
        return self._pairs[node][kind]

    def send(self, send: Send) -> ClientConnection:
        """Send a request to its node, or to any; returns the connection that it took."""
        if send.to is not None:
            connection = self._pairs[self._cluster.by_address(send.to.port).index][NAMED]
        else:
            now = self._client.world.now
            connection = self._pairs[self._cluster.any_node(self._client.number, now).index][ANY]
        connection.ask(send.request_id, send.request, send.version, send.timeout_ms)
        return connection

    def drop(self) -> None:
        """Drop every connection; messages in flight are lost."""
        for pair in self._pairs:
            for connection in pair:
                connection.drop()

    def break_off(self) -> None:
        """Break every connection; waiting requests fail."""
        for pair in self._pairs:
            for connection in pair:
                connection.break_off()
