"""Logins, right and wrong: our listeners answer each step as a real Kafka did, and close where it closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from conformance.kafka.broker import HOST
from conformance.security.login import LoginPlayer, Step, load
from conformance.security.record import GOLDEN, LISTENERS, USERS, Certificates
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from tests.conformance.replaying.virtual_time import run_virtually

SCRIPTS = load()
SETTINGS: dict[str, dict[str, Any]] = {
    "RELOGIN": {"connections_max_reauth_ms": 3_600_000},
    "MTLS": {"ssl_client_auth": "required"},
    "REQUESTED": {"ssl_client_auth": "requested"},
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def node_with(listener: str, certificates: Certificates) -> AsyncIterator[App]:
    settings = Settings(
        listeners=f"{listener}://127.0.0.1:0",
        listener_security_protocol_map=f"{listener}:{LISTENERS.get(listener, 'PLAINTEXT')},HTTP:PLAINTEXT",
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        connection_failed_authentication_delay_ms=0,
        emulator_users=SecretStr(json.dumps(USERS)),
        emulator_oauthbearer_unsecured=True,
        emulator_failed_logins_per_minute=1_000,
        **SETTINGS.get(listener, {}),
    )
    async with App(Options(settings=settings, port=0)) as app:
        yield app


def principal_of(app: App) -> Callable[[LoginPlayer], Any]:
    """The principal that a node has for the connection of a client."""

    async def principal(player: LoginPlayer) -> str:
        await player.request(18, 0, b"")  # the handshake of TLS has ended on the node's side as well
        assert app.kafka is not None
        (found,) = (
            each.principal
            for each in app.kafka.connections
            if each.transport is not None
            and (each.transport.get_extra_info("peername") or (None, None))[1] == player.client_port
        )
        return str(found)

    return principal


def recorded(listener: str) -> dict[str, list[Any]]:
    """The answers of Kafka to each step, by script."""
    lines = Path(GOLDEN / f"{listener.lower()}.jsonl").read_text().splitlines()[1:]
    return {line["script"]: line["answers"] for line in map(json.loads, lines)}


def scripts(listener: str, *, idle: bool) -> dict[str, list[Step]]:
    """The scripts of a listener in which the client falls silent, or the others."""
    return {name: steps for name, steps in SCRIPTS[listener].items() if ("idle" in steps[-1]) is idle}


async def played(listener: str, certificates: Certificates, chosen: dict[str, list[Step]]) -> dict[str, list[Any]]:
    """Answers of our listener to scripts, each on a connection of its own."""
    has_tls = LISTENERS.get(listener, "").endswith("SSL")
    contexts = certificates.contexts if has_tls else dict.fromkeys(certificates.contexts)
    async with node_with(listener, certificates) as app:
        port = app.bound_ports[listener]
        players = [LoginPlayer(HOST, port, contexts, principal_of(app)) for _ in chosen]
        pairs = zip(players, chosen.values(), strict=True)
        answers = await asyncio.gather(*(player.play(steps) for player, steps in pairs))
    return dict(zip(chosen, answers, strict=True))


@pytest.mark.parametrize("listener", SCRIPTS)
async def test_each_step_of_a_login_is_answered_as_recorded(listener: str, certificates: Certificates) -> None:
    chosen = scripts(listener, idle=False)
    found = await played(listener, certificates, chosen)
    assert found == {name: recorded(listener)[name] for name in chosen}


@pytest.mark.parametrize("listener", ["SASL", "SASLTLS", "MTLS"])
def test_a_client_that_falls_silent_is_closed_as_recorded(
    listener: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, listener, {**SETTINGS.get(listener, {}), "connections_max_idle_ms": 3_000})
    chosen = scripts(listener, idle=True)
    found = run_virtually(lambda _: played(listener, certificates, chosen))
    assert found == {name: recorded(listener)[name] for name in chosen}
