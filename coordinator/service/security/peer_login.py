"""Login of a node at the other nodes of its cluster, over HTTP.

Kafka: inter.broker.listener.name, where a broker is a client with settings of its own.
"""

from __future__ import annotations

import base64
import ssl

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.security.tls import load_authorities, load_certificate
from rejoin.coordinator.service.security.users import users_from


def peer_context(settings: Settings, made_ca_location: str) -> ssl.SSLContext:
    """TLS to the other nodes: their authority is in the truststore, and this node shows its own certificate.

    Without a truststore the authorities of the system count. Raises ``ValueError`` where a file cannot be used.
    """
    has_own = bool(made_ca_location or settings.ssl_truststore_location)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if has_own else ssl.create_default_context()
    # Differs: ssl.endpoint.identification.algorithm. Nodes know each other by addresses, not by names.
    context.check_hostname = False
    if made_ca_location:
        context.load_verify_locations(made_ca_location)
    else:
        load_certificate(context, settings)
    if settings.ssl_truststore_location:
        load_authorities(context, settings)
    return context


def peer_authorization(settings: Settings) -> str | None:
    """The header with which this node logs in, if it has a user. Raises ``ValueError`` for one without a password."""
    name = settings.emulator_peers_username
    if not name:
        return None
    password = settings.emulator_peers_password.get_secret_value() or users_from(settings).password(name)
    if not password:
        raise ValueError(
            f"emulator.peers.username {name}: expected its password in the users file, or as "
            "REJOIN_EMULATOR_PEERS_PASSWORD in the environment"
        )
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
