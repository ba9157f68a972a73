"""Addresses that clients of a listener on every address are sent to: each to the host that it connected to."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.config import Settings, settings_from
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.testing import running
from rejoin.protocol.registry import BY_NAME
from tests.certificates import Authority
from tests.coordinator.service.kafka.frames import Peer, find_coordinator, string
from tests.coordinator.service.kafka.test_listener import brokers, metadata
from tests.coordinator.service.security.conftest import Certificates

EVERY_ADDRESS = {"listeners": "PLAINTEXT://0.0.0.0:0", "emulator.insecure": "true"}
LOOPBACK = ("127.0.0.1", "127.0.0.2", "127.3.2.1")
MACHINE = socket.gethostname()


def options(host: str, **settings: Any) -> Options:
    return Options(settings=Settings(emulator_insecure=True, **settings), host=host, port=0, kafka_port=0)


async def sent_to(peer: Peer) -> list[tuple[str, int]]:
    """Where Metadata sends a client, after a check that FindCoordinator names one of these addresses."""
    addresses = [(host, port) for _, host, port in brokers(await peer.ask(metadata()))]
    found = await peer.ask(find_coordinator("g"))
    assert any(found.endswith(string(host) + struct.pack(">i", port)) for host, port in addresses)
    return addresses


async def hosts_of(port: int, connected_to: Iterable[str]) -> list[str]:
    """The host that each client is sent to, with the port that it came by."""
    hosts = []
    for host in connected_to:
        async with Peer(port, host=host) as peer:
            [(named, to)] = await sent_to(peer)
        assert to == port
        hosts.append(named)
    return hosts


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
async def test_each_client_is_sent_to_the_address_that_it_connected_to(host: str) -> None:
    async with running(settings=EVERY_ADDRESS | {"listeners": f"PLAINTEXT://{host}:0"}) as coordinator:
        port = coordinator.app.bound_ports["PLAINTEXT"]
        assert await hosts_of(port, LOOPBACK) == list(LOOPBACK)
        assert coordinator.bootstrap_servers == f"{MACHINE}:{port}", "what is shown to no client in particular"


async def test_a_listener_on_one_address_advertises_that_one() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.2:0", "emulator.insecure": "true"}
    async with running(settings=settings) as coordinator:
        assert await hosts_of(coordinator.app.bound_ports["PLAINTEXT"], ["127.0.0.2"]) == ["127.0.0.2"]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_a_listener_on_every_ipv6_address_sends_each_client_to_an_address_of_its_family() -> None:
    async with App(options("::")) as app:
        assert await hosts_of(app.endpoints[0].port, ["::1", "127.0.0.2"]) == ["::1", "127.0.0.2"]


@pytest.mark.parametrize(
    ("pairs", "environment", "address"),
    [
        (["advertised.listeners=PLAINTEXT://broker.example:29092"], {}, ("broker.example", 29_092)),
        ([], {"REJOIN_ADVERTISED_LISTENERS": "PLAINTEXT://broker.example:29092"}, ("broker.example", 29_092)),
        ([], {"REJOIN_ADVERTISED_LISTENERS": "PLAINTEXT://:29092"}, ("127.0.0.2", 29_092)),
    ],
)
async def test_an_address_of_the_settings_wins(
    pairs: list[str], environment: dict[str, str], address: tuple[str, int]
) -> None:
    given = settings_from([*pairs, "emulator.insecure=true"], environment)
    app = App(Options(settings=given, host="0.0.0.0", port=0, kafka_port=0))
    async with app, Peer(app.bound_ports["PLAINTEXT"], host="127.0.0.2") as peer:
        assert await sent_to(peer) == [address]


async def test_the_host_of_the_command_line_wins() -> None:
    given = options("0.0.0.0")
    async with App(Options(given.settings, "0.0.0.0", 0, kafka_port=0, advertised_host="broker.example")) as app:
        assert await hosts_of(app.endpoints[0].port, LOOPBACK) == ["broker.example"] * len(LOOPBACK)


async def test_an_address_that_is_set_later_holds_for_connections_that_are_open_already() -> None:
    async with running(settings=EVERY_ADDRESS, clock="virtual") as coordinator:
        before = await coordinator.snapshot()
        async with Peer(coordinator.app.bound_ports["PLAINTEXT"], host="127.0.0.2") as peer:
            await sent_to(peer)
            await coordinator.advertise("localhost", 49_153)
            assert await sent_to(peer) == [("localhost", 49_153)]
            await coordinator.restore(before)
            assert await sent_to(peer) == [("localhost", 49_153)]


async def test_several_brokers_of_a_process_have_the_host_by_which_one_of_them_was_reached() -> None:
    async with BrokerCluster(options("0.0.0.0"), 2) as cluster:
        ports = [app.endpoints[0].port for app in cluster.apps]
        for port in ports:
            async with Peer(port, host="127.0.0.2") as peer:
                assert await sent_to(peer) == [("127.0.0.2", each) for each in ports]


async def test_a_client_with_tls_is_sent_to_the_name_that_its_certificate_check_needs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.issue("CN=localhost")
    context = Certificates(authority, server, server, server, server).context()
    async with App(options("0.0.0.0", ssl_keystore_location=str(server.keystore))) as app:
        port = app.endpoints[0].port
        async with Peer(port, context, server_name="localhost") as peer:
            assert await sent_to(peer) == [("localhost", port)]
        async with Peer(port, context, server_name="127.0.0.1") as peer:
            assert await sent_to(peer) == [("127.0.0.1", port)], "an address is not named in the handshake"


@pytest.mark.parametrize(
    ("header", "host"),
    [("localhost:9095", "localhost"), ("127.0.0.2", "127.0.0.2"), ("[::1]:80", "::1"), ("0.0.0.0:1", MACHINE)],
)
async def test_over_http_the_host_header_says_what_a_client_connected_to(header: str, host: str) -> None:
    async with App(options("0.0.0.0")) as app, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{app.port}{BY_NAME['Metadata'].path}"
        body = {"topics": [], "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
        async with session.post(url, json=body, headers={"Host": header}) as answered:
            assert answered.status == 200, await answered.text()
            assert [(each["host"], each["port"]) for each in (await answered.json())["brokers"]] == [(host, app.port)]
