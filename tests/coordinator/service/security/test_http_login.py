"""Over HTTP the same users, tokens and certificates log in, and what is denied is denied by principal."""

from __future__ import annotations

import base64
import json
import time

import aiohttp
import jwt
import pytest
from pydantic import SecretStr

from rejoin.coordinator.service.options import ControlOptions
from rejoin.coordinator.service.security.failed_logins import FailedLogins
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.security.conftest import Certificates

HEARTBEAT = json.dumps({"groupId": "g", "generationId": 1, "memberId": "m"}).encode()
UNKNOWN_MEMBER_ID, GROUP_AUTHORIZATION_FAILED = 25, 30


def basic(name: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def token(name: str, seconds: float = 60) -> str:
    return "Bearer " + jwt.encode({"sub": name, "exp": time.time() + seconds}, "", "none")


async def node_with_users(serve: Serve, **settings: object) -> Harness:
    options = {"kafka_port": 0, "clock": None, "control": ControlOptions(token="control-secret")}
    given = {
        "connection_failed_authentication_delay_ms": 0,
        "emulator_users": SecretStr("{alice: alice-secret, 'jürgen': 'a:b'}"),
        "emulator_oauthbearer_unsecured": True,
        "emulator_deny": ("User:alice:READ:group=g",),
        **settings,
    }
    return await serve(options, **given)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        (basic("alice", "alice-secret"), 200),
        (basic("jürgen", "a:b"), 200),
        (basic("alice", "wrong"), 401),
        (basic("mallory", "alice-secret"), 401),
        ("Basic !", 401),
        ("Basic YWxpY2U=", 401),
        ("Digest x", 401),
        ("a token", 200),
        ("an expired token", 401),
        ("Bearer x", 401),
        ("Bearer control-secret", 401),
        ("Bearer eyJhbGciOiAiUlMyNTYifQ.ü.x", 401),
    ],
)
async def test_a_request_needs_a_login(serve: Serve, given: str | None, status: int) -> None:
    node = await node_with_users(serve)
    given = {"a token": token("alice"), "an expired token": token("alice", -60)}.get(given or "", given)
    headers = {} if given is None else {"Authorization": given}
    for method, path in (("POST", "/v1/heartbeat"), ("GET", "/groups"), ("GET", "/metrics")):
        answered = await node.request(method, path, HEARTBEAT if method == "POST" else None, **headers)
        assert answered.status == status
        assert ("WWW-Authenticate" in answered.headers) is (status == 401)
        if status == 401:
            assert "secret" not in answered.body.decode()
    assert (await node.request("GET", "/readyz")).status == 200, "probes have no login"


async def test_what_is_denied_is_denied_to_the_principal(serve: Serve) -> None:
    node = await node_with_users(serve)
    for login, error in (
        (basic("alice", "alice-secret"), GROUP_AUTHORIZATION_FAILED),
        (token("alice"), GROUP_AUTHORIZATION_FAILED),
        (basic("jürgen", "a:b"), UNKNOWN_MEMBER_ID),
    ):
        answered = await node.request("POST", "/v1/heartbeat", HEARTBEAT, Authorization=login)
        assert answered.json["errorCode"] == error
    claimed = {"Authorization": basic("alice", "alice-secret"), "Kafka_Principal": "User:bob"}
    assert (await node.request("POST", "/v1/heartbeat", HEARTBEAT, **claimed)).status == 403


async def test_the_control_api_has_its_own_token(serve: Serve) -> None:
    node = await node_with_users(serve)
    for given, status in (("Bearer control-secret", 200), (basic("alice", "alice-secret"), 401)):
        assert (await node.request("GET", "/control", Authorization=given)).status == status
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        refused = await node.request("POST", "/control/faults", b"{}", Authorization="Bearer control-secret", **headers)
        assert refused.status in (403, 421)


async def test_an_address_with_many_failed_logins_is_refused_for_a_while(serve: Serve) -> None:
    node = await node_with_users(serve, emulator_failed_logins_per_minute=3)
    statuses = [
        (await node.request("GET", "/groups", Authorization=basic("alice", password))).status
        for password in ("alice-secret", "a", "b", "c", "d", "alice-secret")
    ]
    assert statuses == [200, 401, 401, 401, 429, 429]
    refused = await node.request("GET", "/groups")
    assert 0 < int(refused.headers["Retry-After"]) <= 61


def test_failures_are_forgotten_after_a_minute() -> None:
    failures = FailedLogins(2)
    for at in (0.0, 30.0):
        assert failures.wait_seconds("a", at) == 0
        failures.add("a", at)
    assert (failures.wait_seconds("a", 40.0), failures.wait_seconds("b", 40.0)) == (20.0, 0)
    failures.add("a", 61.0)
    assert failures.wait_seconds("a", 61.0) == 0


async def test_a_certificate_is_a_login_over_http(serve: Serve, certificates: Certificates) -> None:
    node = await serve(
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        ssl_client_auth="requested",
        ssl_principal_mapping_rules="RULE:^CN=(.*?),.*$/$1/",
        emulator_deny=("User:alice:READ:group=g",),
    )
    for client, error in ((certificates.client, GROUP_AUTHORIZATION_FAILED), (None, UNKNOWN_MEMBER_ID)):
        connector = aiohttp.TCPConnector(ssl=certificates.context(client))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(
                f"{node.app.url}/v1/heartbeat", data=HEARTBEAT, headers={"Content-Type": "application/json"}
            ) as answered,
        ):
            assert (await answered.json())["errorCode"] == error
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=certificates.context(client))) as session,
            session.get(f"{node.app.url}/groups", headers={"Kafka-Principal": "User:bob"}) as claimed,
        ):
            assert claimed.status == 403, "who it is says the certificate"
