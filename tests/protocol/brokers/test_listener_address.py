"""Which addresses a node may listen on and advertise, as Kafka decides it."""

from __future__ import annotations

import pytest

from rejoin.protocol.brokers.listener_address import check_advertised_host, checked_advertised, checked_listeners


@pytest.mark.parametrize(
    "listeners",
    [
        "A://127.0.0.1:9092,B://127.0.0.1:9093",
        "A://127.0.0.1:0,B://127.0.0.1:0",
        "A://127.0.0.1:9092,B://[::1]:9092",
        "A://:9092",
        "",
    ],
)
def test_listeners_have_a_port_each_or_one_in_each_version_of_ip(listeners: str) -> None:
    assert checked_listeners(listeners) == listeners


@pytest.mark.parametrize(
    "listeners",
    [
        "A://127.0.0.1:9092,B://127.0.0.1:9092",
        "A://127.0.0.1:9092,B://127.0.0.2:9092",
        "A://localhost:9092,B://[::1]:9092",
        "A://:9092,B://[::1]:9092",
        "A://[::1]:9092,B://[::2]:9092",
    ],
)
def test_others_with_the_same_port_are_refused(listeners: str) -> None:
    with pytest.raises(ValueError, match="A and B have the same port, 9092; expected a port of its own"):
        checked_listeners(listeners)
    assert checked_advertised(listeners) == listeners, "clients may reach all of them by one address"


@pytest.mark.parametrize("host", ["localhost", "broker-1.example.com", "my_service", "10.0.0.1", "::1", "fe80::1%eth0"])
def test_a_host_that_clients_can_connect_to_is_advertised(host: str) -> None:
    check_advertised_host(host)


@pytest.mark.parametrize("host", ["", "a/b", "a b", "host:9092", "[::1]", "-x", "caf\xe9", "0.0.0.0", "::"])
def test_a_host_that_they_cannot_connect_to_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        check_advertised_host(host)


def test_the_host_of_an_advertised_listener_may_be_left_out() -> None:
    assert checked_advertised("DOCKER://:9092") == "DOCKER://:9092"
    with pytest.raises(ValueError, match=r"0\.0\.0\.0 stands for every address"):
        checked_advertised("DOCKER://0.0.0.0:9092")
