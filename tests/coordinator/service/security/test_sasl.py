"""Logins on Kafka's listener: what is served before one, how long it lasts, and how slowly a failed one is answered."""

from __future__ import annotations

import asyncio
import struct

import pytest
from pydantic import SecretStr

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.security.authenticator import Authenticator, Verdict
from rejoin.coordinator.service.security.logins import Logins
from rejoin.protocol.registry import APIS, Api
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.kafka.frames import Peer, heartbeat, request, string

USERS = SecretStr("alice: alice-secret")
HANDSHAKE = request(17, 1, 1, string("PLAIN"))
GROUP_AUTHORIZATION_FAILED, SASL_AUTHENTICATION_FAILED, UNKNOWN_MEMBER_ID = 30, 58, 25


def authenticate(password: str) -> bytes:
    token = f"\0alice\0{password}".encode()
    return request(36, 1, 2, struct.pack(">i", len(token)) + token)


def error(body: bytes) -> int:
    return int.from_bytes(body[:2], "big")


@pytest.mark.parametrize("api", APIS, ids=lambda api: str(api.name))
def test_nothing_is_served_before_a_login(api: Api) -> None:
    logins = Logins(Settings(emulator_users=USERS))
    frame = request(api.key, api.min_version, 1)
    step = Authenticator(logins, 0).receive(frame, 0)
    if api.name == "ApiVersions":
        assert step.verdict is Verdict.SERVE_API_VERSIONS
    else:
        assert step.verdict in (Verdict.REFUSED, Verdict.CLOSED)
        assert step.answer == b""


async def test_what_is_denied_is_denied_to_the_principal(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, emulator_users=USERS, emulator_deny=("User:alice:READ:group=hers",))
    async with Peer(node.app.endpoints[0].port) as peer:
        assert error(await peer.ask(HANDSHAKE)) == 0
        assert error(await peer.ask(authenticate("alice-secret"))) == 0
        assert error(await peer.ask(heartbeat("hers", "m"))) == GROUP_AUTHORIZATION_FAILED
        assert error(await peer.ask(heartbeat("other", "m"))) == UNKNOWN_MEMBER_ID


async def test_a_login_that_is_not_renewed_ends_with_its_connection(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, emulator_users=USERS, connections_max_reauth_ms=1)
    async with Peer(node.app.endpoints[0].port) as peer:
        assert error(await peer.ask(HANDSHAKE)) == 0
        assert error(await peer.ask(authenticate("alice-secret"))) == 0
        node.clock.advance(1)
        assert error(await peer.ask(heartbeat("g", "m"))) == UNKNOWN_MEMBER_ID
        node.clock.advance(1)
        with pytest.raises(asyncio.IncompleteReadError):
            await peer.ask(heartbeat("g", "m"))


async def test_a_failed_login_is_answered_late(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, emulator_users=USERS, connection_failed_authentication_delay_ms=100)
    loop = asyncio.get_running_loop()
    async with Peer(node.app.endpoints[0].port) as peer:
        assert error(await peer.ask(HANDSHAKE)) == 0
        began = loop.time()
        assert error(await peer.ask(authenticate("wrong"))) == SASL_AUTHENTICATION_FAILED
        assert loop.time() - began > 0.09
        assert await peer.rest() == b""


async def failed(port: int, password: str) -> bytes:
    """The answer to a login on a connection of its own."""
    async with Peer(port) as peer:
        assert error(await peer.ask(HANDSHAKE)) == 0
        answer = await peer.ask(authenticate(password))
        assert error(answer) == SASL_AUTHENTICATION_FAILED
        return answer


async def test_an_address_with_many_failed_logins_is_refused_for_a_while(serve: Serve) -> None:
    node = await serve(
        {"kafka_port": 0},
        emulator_users=USERS,
        connection_failed_authentication_delay_ms=0,
        emulator_failed_logins_per_minute=2,
    )
    port = node.app.endpoints[0].port
    async with Peer(port) as before:
        assert error(await before.ask(HANDSHAKE)) == 0
        assert error(await before.ask(authenticate("alice-secret"))) == 0
        for _ in range(2):
            assert b"Invalid username or password" in await failed(port, "wrong")
        assert b"Too many logins from this address have failed" in await failed(port, "alice-secret")
        assert error(await before.ask(heartbeat("g", "m"))) == UNKNOWN_MEMBER_ID, "connections go on"
    refused = await node.request("GET", "/groups", Authorization="Basic YWxpY2U6YWxpY2Utc2VjcmV0")
    assert refused.status == 429, "one count for both protocols"


async def test_what_comes_behind_a_failed_login_is_not_served(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, emulator_users=USERS, connection_failed_authentication_delay_ms=0)
    async with Peer(node.app.endpoints[0].port) as peer:
        peer.send(HANDSHAKE, authenticate("wrong"), authenticate("alice-secret"), heartbeat("g", "m"))
        assert error((await peer.receive())[1]) == 0
        assert error((await peer.receive())[1]) == SASL_AUTHENTICATION_FAILED
        assert await peer.rest() == b""
