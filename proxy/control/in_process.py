"""A proxy in the process of a test, with the parts that the kit asks of a running coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from pydantic import ValidationError

from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.kafka.address import broker_address
from rejoin.client.transports.security import kafka_security
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.errors import NotPossible
from rejoin.protocol.validation import sentence
from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.control.running import started
from rejoin.proxy.listeners.client_login import ClientProtection
from rejoin.proxy.service import Proxy, ProxyOptions

_SERVERS: Final = "bootstrap.servers"


def bootstrap_from(servers: str) -> tuple[tuple[str, int], ...]:
    """Addresses from ``HOST:PORT``, several with commas. Raises ``ValueError``."""
    found = (broker_address(each.strip()) for each in servers.split(","))
    return tuple((each.host, each.port) for each in found)


def _cluster(given: str | Mapping[str, Any]) -> tuple[str, ClientSecurityConfig]:
    """The servers of a cluster, and TLS and login towards it. Raises ``ValueError``."""
    if isinstance(given, str):
        return given, ClientSecurityConfig()
    rest = {str(name): value for name, value in given.items()}
    servers = rest.pop(_SERVERS, None)
    if not isinstance(servers, str):
        raise ValueError(f"expected {_SERVERS} among the settings, as HOST:PORT")
    try:
        return servers, ClientSecurityConfig.model_validate(rest)
    except ValidationError as problem:
        raise ValueError(sentence(problem, ClientSecurityConfig, kind="setting")) from None


class ProxiedCluster:
    """A cluster behind a proxy under control; ``async with`` starts and stops the proxy."""

    control: ProxyControl

    def __init__(self, cluster: str | Mapping[str, Any], port: int = 0, settings: Settings | None = None) -> None:
        """The cluster is its servers, or settings of a client with ``bootstrap.servers``, TLS and a login among them.

        ``settings`` are those of the proxy's own listeners. Raises ``ValueError``.
        """
        servers, security = _cluster(cluster)
        self._clients = None if settings is None else ClientProtection(settings)
        self._options = ProxyOptions(
            bootstrap=bootstrap_from(servers), port=port, upstream=kafka_security(security), clients=self._clients
        )
        self._stack = AsyncExitStack()
        if self._clients is not None:
            self._stack.callback(self._clients.close)
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
