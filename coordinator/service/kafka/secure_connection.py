"""Connections of listeners with TLS or SASL: who the client is, before anything is served.

Kafka: SslTransportLayer, SaslServerAuthenticator.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rejoin.coordinator.service.kafka.connection import KafkaConnection
from rejoin.coordinator.service.security.principals import SslPrincipals

if TYPE_CHECKING:
    from rejoin.coordinator.service.kafka.listener import KafkaListener


class TlsConnection(KafkaConnection):
    """A connection whose client is known by its certificate, if it shows one."""

    __slots__ = ("_principals",)

    def __init__(self, listener: KafkaListener, name: str, principals: SslPrincipals) -> None:
        super().__init__(listener, name)
        self._principals = principals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert")
        principal = self._principals.principal(certificate)
        if principal is None:
            self._listener.refuse_login(self, "no rule of ssl.principal.mapping.rules fits the certificate")
            self.close()
        else:
            self.principal = principal
