"""Logins by delegation tokens: at every broker, after a restart, until the token expires by the node's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from conformance.kafka.broker import HOST
from conformance.security.record_acls import Login
from conformance.security.record_tokens import SocketPlayer, scram_login
from conformance.security.token_steps import SECRET, create, describe, expire, log_in
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.protocol.errors import ErrorCode

ALICE: Final = SecretStr("alice: alice-secret")
UNKNOWN: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
)
HOUR: Final = 3_600_000
USUAL: Final[dict[str, Any]] = {
    "connection_failed_authentication_delay_ms": 0,
    "emulator_users": ALICE,
    "delegation_token_secret_key": SecretStr(SECRET),
}


def settings(**more: Any) -> Settings:
    protocols = "SASL:SASL_PLAINTEXT,HTTP:PLAINTEXT"
    return Settings(**USUAL, listeners="SASL://127.0.0.1:0", listener_security_protocol_map=protocols, **more)


@asynccontextmanager
async def player(app: App) -> AsyncIterator[SocketPlayer]:
    """Alice, who has logged in by PLAIN."""
    port = next(iter(app.bound_ports.values()))
    playing = SocketPlayer({"alice": await Login.of("alice", port), "admin": await Login.of("alice", port)}, port, 0)
    try:
        yield playing
    finally:
        playing.close()


async def test_a_login_ends_with_its_token_on_the_clock_of_the_node() -> None:
    clock = VirtualClock()
    async with App(Options(settings=settings(), port=0, clock=clock)) as app, player(app) as alice:
        await alice.play_one("alice", create("day"))
        assert await alice.play_one("alice", log_in("day", stays="by-token")) == ["ok", 24 * HOUR]
        refused = await alice.play_one("by-token", describe())
        assert refused["errorCode"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.name
        for passed in (0, 24 * HOUR):
            clock.jump(clock.now() + passed)
            clock.catch_up()
            assert await alice.play_one("by-token", describe()) == refused, "it has not ended"
        clock.jump(clock.now() + 1)
        assert await alice.play_one("by-token", describe()) == "closed"
        assert await alice.play_one("alice", log_in("day", stays="late")) == ["ok", 0]
        clock.jump(clock.now() + 1)
        assert await alice.play_one("late", describe()) == "closed"
        clock.jump(clock.now() + HOUR)
        clock.catch_up()
        assert await alice.play_one("alice", log_in("day")) == [UNKNOWN, 0]


async def test_a_token_is_known_after_a_restart(tmp_path: Path) -> None:
    options = Options(settings=settings(), port=0, data=tmp_path / "data")
    async with App(options) as app, player(app) as alice:
        await alice.play_one("alice", create("kept"))
        await alice.play_one("alice", create("gone"))
        await alice.play_one("alice", expire("gone"))
        known = alice.known
    async with App(options) as app, player(app) as alice:
        alice.known.update(known)
        assert (await alice.play_one("alice", log_in("kept")))[0] == "ok"
        assert await alice.play_one("alice", log_in("gone")) == [UNKNOWN, 0]
        shown = await alice.play_one("alice", describe())
        assert [token["tokenId"] for token in shown["tokens"]] == ["kept"]


async def test_a_token_is_known_at_every_broker_at_once() -> None:
    options = Options(settings=Settings(**USUAL), port=0, kafka_port=0)
    async with BrokerCluster(options, 3) as cluster, player(cluster.apps[0]) as alice:
        await alice.play_one("alice", create("one"))
        wanted = alice.filled(log_in("one"))
        for app in cluster.apps:
            connection = await Login.connect(HOST, next(iter(app.bound_ports.values())))
            assert (await scram_login(connection.exchange, wanted))[0] == "ok"
            connection.close()
