"""Limits of connections, at instants that the tests choose; what Kafka does was recorded."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.security.client_quotas import CONNECTION_CREATION_RATE, IP
from rejoin.coordinator.service.kafka.connection_limits import ConnectionFate, ConnectionLimits, Limits
from rejoin.coordinator.settings.listeners import connections_by_address

GOLDEN = Path(__file__).parents[3] / "golden" / "connections.jsonl"
RECORDED: dict[str, Any] = {
    line["scenario"]: line["seen"] for line in map(json.loads, GOLDEN.read_text().splitlines()[1:])
}
SLOW = "127.0.0.4"


def limits(quotas: Limits | None = None, **settings: Any) -> ConnectionLimits:
    given = Settings(**settings)
    return ConnectionLimits(lambda: given, lambda: quotas or {})


def outcomes(connections: ConnectionLimits, count: int, now: float, address: str = SLOW) -> list[str]:
    """As the recording names them: who is closed later waits at first."""
    names = {ConnectionFate.ACCEPTED: "answered", ConnectionFate.CLOSED: "closed"}
    return [names.get(connections.admit(address, now).fate, "waits") for _ in range(count)]


def test_above_the_limit_of_all_one_waits_until_another_is_closed() -> None:
    seen = RECORDED["max.connections"]
    connections = limits(max_connections=10)
    assert outcomes(connections, 11, 0.0) == [*seen["ten"], seen["eleventh"]]
    connections.closed(SLOW)
    assert outcomes(connections, 1, 1.0) == [seen["eleventh after one was closed"]]


def test_above_the_limit_of_an_address_one_is_closed() -> None:
    seen = RECORDED["max.connections.per.ip"]
    connections = limits(max_connections_per_ip=3, max_connections_per_ip_overrides="127.0.0.3:5")
    for name, address, most in (("default", "127.0.0.2", 3), ("override", "127.0.0.3", 5)):
        assert outcomes(connections, most + 1, 0.0, address) == [*seen[f"{name}: within"], seen[f"{name}: one more"]]
        connections.closed(address)
        assert outcomes(connections, 1, 0.0, address) == [seen[f"{name}: after one was closed"]]


@pytest.mark.parametrize("name", [SLOW, None])
def test_above_the_rate_of_an_address_one_is_closed_after_a_while(name: str | None) -> None:
    seen = RECORDED["connection_creation_rate"]
    connections = limits({((IP, name),): {CONNECTION_CREATION_RATE: 1.0}})
    assert Counter(outcomes(connections, 16, 100.0)) == Counter(seen["first burst"])
    refused = connections.admit(SLOW, 100.0)
    assert (refused.fate, refused.seconds) == (ConnectionFate.CLOSED_LATER, 1.0), "no longer than a window"
    # Who was refused does not count, or the rate would never fall.
    assert outcomes(connections, 1, 102.5) == ["waits"]
    assert outcomes(connections, 1, 111.5) == ["answered"]
    if name is not None:
        assert outcomes(connections, 20, 100.0, "127.0.0.1") == ["answered"] * 20


def test_above_the_rate_of_all_they_are_accepted_one_after_the_other() -> None:
    connections = limits(max_connection_creation_rate=4)
    accepted_at: list[float] = []
    now = 100.0
    while len(accepted_at) < 60:
        admission = connections.admit("127.0.0.1", now)
        if admission.fate is ConnectionFate.ACCEPTED:
            accepted_at.append(round(now - 100.0, 1))
        else:
            assert admission.fate is ConnectionFate.WAITS
            assert 0 < admission.seconds <= 1.0
            now += admission.seconds
    at_once = accepted_at.count(0.0)
    assert at_once == 40, "what ten windows allow"
    recorded = RECORDED["max.connection.creation.rate"]["answered after seconds"]
    assert recorded[at_once - 1] < 1.0 <= recorded[at_once + 4]
    assert abs(recorded[-1] - accepted_at[-1]) < 2.5


@pytest.mark.parametrize("text", ["127.0.0.1", ":5", "a:b", "127.0.0.1:-1"])
def test_overrides_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="expected ADDRESS:COUNT"):
        Settings(max_connections_per_ip_overrides=text)


def test_overrides_are_read() -> None:
    assert connections_by_address("localhost:2, [::1]:3,") == {"127.0.0.1": 2, "::1": 3}


def test_limits_that_change_hold_for_the_next_connection() -> None:
    now = [Settings(max_connections=1)]
    connections = ConnectionLimits(lambda: now[0], dict)
    assert outcomes(connections, 2, 0.0) == ["answered", "waits"]
    now[0] = Settings(max_connections=3, max_connections_per_ip=2)
    assert outcomes(connections, 2, 1.0) == ["answered", "closed"]
