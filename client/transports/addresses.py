"""The transport that a list of servers asks for: Kafka's protocol for ``HOST:PORT``, HTTP for ``http://HOST:PORT``."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.base import Transport
from rejoin.client.transports.http import HttpTransport
from rejoin.client.transports.kafka.transport import KafkaTransport
from rejoin.client.transports.security import http_security, kafka_security


def split_servers(text: str) -> list[str]:
    """The servers of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def check_servers(servers: Sequence[str], security: ClientSecurityConfig) -> None:
    """Raises ValueError for servers that make no sense, or files that cannot be used."""
    open_transport(servers, security=security)


def open_transport(
    servers: Sequence[str],
    *,
    reconnect_backoff_ms: int = 50,
    reconnect_backoff_max_ms: int = 1_000,
    security: ClientSecurityConfig | None = None,
) -> Transport:
    """A transport to these servers, which all have the same kind of address. Raises ValueError."""
    over_http = ["//" in server for server in servers]
    if not servers:
        raise ValueError("bootstrap.servers: expected HOST:PORT or http://HOST:PORT, several with commas")
    if any(over_http) and not all(over_http):
        raise ValueError(f"bootstrap.servers {', '.join(servers)}: expected all with http:// or none")
    backoff = {"reconnect_backoff_ms": reconnect_backoff_ms, "reconnect_backoff_max_ms": reconnect_backoff_max_ms}
    security = security or ClientSecurityConfig()
    if any(over_http):
        return HttpTransport(servers, **backoff, security=http_security(security))
    return KafkaTransport(servers, **backoff, security=kafka_security(security))


def no_coordinator(servers: str, problem: str) -> str:
    """A command's error where nothing answered as a coordinator does. ``problem`` is what came instead."""
    advice = "rejoin serve starts one, --bootstrap-server names another address"
    return f"no coordinator at {servers} ({problem}); {advice}"
