"""Addresses that clients are sent to, set after the start: Kafka's protocol is read here byte by byte."""

from __future__ import annotations

import struct

import pytest

from rejoin.coordinator.testing import GroupCoordinator, OperationRefused, running
from tests.coordinator.service.kafka.frames import Peer, find_coordinator, string
from tests.coordinator.service.kafka.test_listener import brokers, metadata

MAPPED = ("localhost", 49_153)


async def sent_to(port: int) -> tuple[str, int]:
    """Where a client is sent that asks at a port, for its coordinator as well."""
    async with Peer(port) as peer:
        [(_, host, to)] = brokers(await peer.ask(metadata()))
        found = await peer.ask(find_coordinator("g"))
    assert found == struct.pack(">hi", 0, 1) + string(host) + struct.pack(">i", to)
    return host, to


def bound(coordinator: GroupCoordinator, listener: str = "PLAINTEXT") -> int:
    return coordinator.app.bound_ports[listener]


async def test_clients_are_sent_to_an_address_that_is_set_later() -> None:
    async with running() as coordinator:
        port = bound(coordinator)
        assert await sent_to(port) == ("127.0.0.1", port)
        assert await coordinator.advertise(*MAPPED) == "localhost:49153"
        assert coordinator.bootstrap_servers == "localhost:49153"
        assert await sent_to(port) == MAPPED


async def test_the_address_outlives_resets_and_snapshots_of_before() -> None:
    async with running(clock="virtual") as coordinator:
        port = bound(coordinator)
        before = await coordinator.snapshot()
        await coordinator.advertise(*MAPPED)
        await coordinator.restore(before)
        assert await sent_to(port) == MAPPED
        await coordinator.reset()
        assert await sent_to(port) == MAPPED


async def test_each_listener_has_an_address_of_its_own() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,DOCKER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,DOCKER:PLAINTEXT",
    }
    async with running(settings=settings) as coordinator:
        plain = bound(coordinator)
        await coordinator.advertise("broker", 9_092, "DOCKER")
        assert await sent_to(bound(coordinator, "DOCKER")) == ("broker", 9_092)
        assert await sent_to(plain) == ("127.0.0.1", plain)
        with pytest.raises(OperationRefused, match=r"there is no listener 'DOCKR'.*DOCKER"):
            await coordinator.advertise("broker", 9_092, "DOCKR")


@pytest.mark.parametrize(
    ("host", "port"), [("0.0.0.0", 9_092), ("a b", 9_092), ("a:1", 9_092), ("", 9_092), ("broker", 0)]
)
async def test_an_address_that_clients_cannot_use_is_refused(host: str, port: int) -> None:
    async with running() as coordinator:
        with pytest.raises(ValueError, match=r"host|port"):
            await coordinator.advertise(host, port)
        assert await sent_to(bound(coordinator)) == ("127.0.0.1", bound(coordinator))


async def test_several_brokers_keep_their_addresses() -> None:
    async with running(brokers=2) as coordinator:
        with pytest.raises(OperationRefused, match=r"name them in advertised\.listeners"):
            await coordinator.advertise(*MAPPED)
