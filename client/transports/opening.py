"""The transport for a list of servers: ``HOST:PORT`` speaks Kafka's protocol, ``http://HOST:PORT`` HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.client.transports.base import Transport


def check_servers(servers: Sequence[str]) -> None:
    """Raises ValueError for servers that make no sense."""
    open_transport(servers)


def open_transport(
    servers: Sequence[str], *, reconnect_backoff_ms: int = 50, reconnect_backoff_max_ms: int = 1_000
) -> Transport:
    """A transport to these servers; nothing is connected yet. Raises ValueError for servers that make no sense."""
    given = [server.strip() for server in servers if server.strip()]
    over_http = [server for server in given if "://" in server]
    if not given:
        raise ValueError("expected a server, as HOST:PORT or http://HOST:PORT")
    if over_http and len(over_http) < len(given):
        raise ValueError(f"{', '.join(given)}: expected all as HOST:PORT (Kafka's protocol) or all as http://HOST:PORT")
    first, longest = reconnect_backoff_ms, reconnect_backoff_max_ms
    if over_http:
        from rejoin.client.transports.http import HttpTransport  # noqa: PLC0415 (aiohttp, which Kafka's protocol spares)

        return HttpTransport(given, reconnect_backoff_ms=first, reconnect_backoff_max_ms=longest)
    from rejoin.client.transports.kafka.transport import KafkaTransport  # noqa: PLC0415 (the codec, which HTTP spares)

    return KafkaTransport(given, reconnect_backoff_ms=first, reconnect_backoff_max_ms=longest)
