"""The brokers of the cluster, asked for by the proxy itself, so that each has its listener before a client asks.

Clients that knew the ports of brokers before the proxy was started again come back to them. Some clients never go back
to bootstrap.servers, and would find no listener.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.client.transports.kafka.connection import open_connection
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.registry import METADATA

if TYPE_CHECKING:
    from rejoin.proxy.service import Proxy

_SECONDS: Final = 10.0
_VERSION: Final = 1
"""The first one in which a list without topics asks for brokers alone."""


async def find_brokers(proxy: Proxy) -> bool:
    """Make a listener for each broker that the cluster names; False where none of its addresses answers.

    A cluster with logins answers only where the proxy has one of its own.
    """
    upstream = proxy.options.upstream
    for host, port in proxy.options.bootstrap:
        try:
            async with asyncio.timeout(_SECONDS):
                connection = await open_connection(BrokerAddress(host, port), "rejoin-proxy", upstream.ssl)
                try:
                    if upstream.authenticate is not None:
                        await upstream.authenticate(connection)
                    answer: Any = await connection.ask(METADATA, MetadataRequest(topics=()), _VERSION)
                finally:
                    connection.close("its brokers are known")
            for broker in answer.brokers:
                proxy.brokers.local(broker.node_id, broker.host, broker.port)
        except Exception as problem:
            address, reason = f"{host}:{port}", str(problem) or type(problem).__name__
            proxy.log.info("proxy_brokers_not_known", address=address, reason=reason.removeprefix(f"{address}: "))
        else:
            return True
    return False
