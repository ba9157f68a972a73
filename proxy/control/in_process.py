"""A proxy in the process of a test, with the parts that the kit asks of a running coordinator."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import NoReturn, Self

from rejoin.client.transports.kafka.address import broker_address
from rejoin.coordinator.control.errors import NotPossible
from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.control.running import started
from rejoin.proxy.service import Proxy, ProxyOptions


def bootstrap_from(servers: str) -> tuple[tuple[str, int], ...]:
    """Addresses from ``HOST:PORT``, several with commas. Raises ``ValueError``."""
    found = (broker_address(each.strip()) for each in servers.split(","))
    return tuple((each.host, each.port) for each in found)


class ProxiedCluster:
    """A cluster behind a proxy under control; ``async with`` starts and stops the proxy."""

    control: ProxyControl

    def __init__(self, servers: str, port: int = 0) -> None:
        """``servers`` are those of the cluster. Raises ``ValueError``."""
        self._options = ProxyOptions(bootstrap=bootstrap_from(servers), port=port)
        self._stack = AsyncExitStack()
        self._proxy: Proxy

    async def __aenter__(self) -> Self:
        self._proxy, self.control = await started(self._stack, self._options)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the proxy."""
        return self._proxy.bootstrap_servers

    @property
    def url(self) -> NoReturn:
        """Refuse: a cluster speaks no HTTP."""
        raise NotPossible("real-cluster", "a real cluster has no address over HTTP; clients use bootstrap_servers")
