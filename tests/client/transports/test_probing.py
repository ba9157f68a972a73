"""Addresses that speak another protocol than they are asked in: the error says which, and what to write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from rejoin.client.core.errors import WrongProtocolError
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.addresses import open_transport
from rejoin.client.transports.base import TransportError
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from tests.certificates import Authority

ADDRESSES: dict[str, Callable[[App], str]] = {
    "Kafka's protocol": lambda app: app.bootstrap_servers,
    "HTTP": lambda app: app.url.partition("://")[2],
}


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[dict[str, App]]:
    """Nodes with TLS and without, each with a listener of Kafka's protocol and one of HTTP."""
    keystore = str(Authority(tmp_path).issue("CN=localhost").keystore)
    options = {
        "with TLS": Settings(ssl_keystore_location=keystore),
        "without TLS": Settings(),
        "of known clients": Settings(
            ssl_keystore_location=keystore, ssl_client_auth="required", ssl_truststore_location=keystore
        ),
    }
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(App(Options(settings=settings, port=0, kafka_port=0)))
            for name, settings in options.items()
        }


async def ask(server: str, security: ClientSecurityConfig) -> None:
    transport = open_transport([server], security=security)
    try:
        await transport.send(None, MetadataRequest(topics=None), 9, timeout_ms=60_000, client_id="test")
    finally:
        await transport.close()


@pytest.mark.parametrize(
    ("spoken", "asked", "advice"),
    [
        ("Kafka's protocol with TLS", "Kafka's protocol without TLS", "set security.protocol to SSL or SASL_SSL"),
        (
            "Kafka's protocol without TLS",
            "Kafka's protocol with TLS",
            "set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
        ),
        ("HTTP without TLS", "Kafka's protocol without TLS", "write http://{}"),
        ("HTTP without TLS", "Kafka's protocol with TLS", "write http://{}"),
        ("HTTP with TLS", "Kafka's protocol without TLS", "write https://{}"),
        ("HTTP without TLS", "HTTP with TLS", "write http://{}"),
        ("HTTP with TLS", "HTTP without TLS", "write https://{}"),
        ("Kafka's protocol with TLS", "HTTP without TLS", "write {} and set security.protocol to SSL or SASL_SSL"),
        ("Kafka's protocol without TLS", "HTTP without TLS", "write {}"),
        (
            "Kafka's protocol without TLS",
            "HTTP with TLS",
            "write {} and set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
        ),
    ],
)
async def test_what_an_address_speaks_is_named_with_what_to_write(
    nodes: dict[str, App], spoken: str, asked: str, advice: str
) -> None:
    name, _, tls = spoken.rpartition(" with")
    address = ADDRESSES[name](nodes[f"with{tls}"])
    has_tls = asked.endswith("with TLS")
    scheme = f"http{'s' if has_tls else ''}://" if asked.startswith("HTTP") else ""
    with pytest.raises(WrongProtocolError) as problem:
        await ask(f"{scheme}{address}", ClientSecurityConfig(security_protocol="SSL" if has_tls else "PLAINTEXT"))
    assert str(problem.value) == f"{address} speaks {spoken}, and was asked in {asked}; {advice.format(address)}"


@pytest.mark.parametrize("protocol", ADDRESSES)
async def test_tls_shows_where_clients_need_a_certificate_as_well(nodes: dict[str, App], protocol: str) -> None:
    address = ADDRESSES[protocol](nodes["of known clients"])
    server = f"http://{address}" if protocol == "HTTP" else address
    with pytest.raises(WrongProtocolError, match=f"speaks {protocol} with TLS, and was asked in {protocol} without"):
        await ask(server, ClientSecurityConfig())


@asynccontextmanager
async def closing_all(received: list[bytes]) -> AsyncIterator[str]:
    """A server that ends every connection after what it read first, as one that is starting."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(65_536))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield "{}:{}".format(*server.sockets[0].getsockname())


@pytest.mark.parametrize("scheme", ["", "http://", "https://"])
async def test_a_server_that_answers_in_no_protocol_may_be_starting_and_gets_no_login(scheme: str) -> None:
    received: list[bytes] = []
    security = ClientSecurityConfig(
        security_protocol="PLAINTEXT" if scheme == "http://" else "SASL_SSL",
        sasl_username="alice",
        sasl_password=SecretStr("alice-secret"),
    )
    async with closing_all(received) as address:
        with pytest.raises(TransportError):
            await ask(scheme + address, security)
    assert len(received) > 1, "it is asked in other protocols"
    assert not any(secret in each for each in received for secret in (b"secret", b"Authorization"))
