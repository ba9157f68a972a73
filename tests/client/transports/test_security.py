"""Our own client logs in by every mechanism, over both protocols, and says why a login was refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from pydantic import SecretStr

from rejoin.client import Consumer, Producer
from rejoin.client.commands.setting_options import WrongOption, security_from, with_settings
from rejoin.client.config import ConsumerConfig, checked_config
from rejoin.client.core.errors import AuthenticationError, KafkaError
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.addresses import open_transport
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.http import ProblemError
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse
from tests.certificates import Authority

METADATA = MetadataRequest(topics=None)
LISTENERS = {"SASL": "SASL_PLAINTEXT", "SASLTLS": "SASL_SSL", "HTTP": "SASL_SSL"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Node:
    """A node that wants logins, and what a client needs for one."""

    def __init__(self, app: App, folder: Path, authority: Authority) -> None:
        self.app = app
        self._folder = folder
        self._authority = authority

    def settings(self, listener: str, mechanism: str, **more: Any) -> dict[str, Any]:
        claims = {"sub": "alice", "exp": time.time() + more.pop("expires", 60)}
        token = self._folder / f"{mechanism}-{claims['exp']}"
        token.write_text(jwt.encode(claims, "", "none"))
        return {
            "security.protocol": LISTENERS[listener],
            "ssl.truststore.location": str(self._authority.location),
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
            "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
            **more,
        }

    async def ask(self, listener: str, settings: dict[str, Any]) -> Response:
        server = self.app.url if listener == "HTTP" else f"127.0.0.1:{self.app.bound_ports[listener]}"
        transport = open_transport([server], security=ClientSecurityConfig(**settings))
        try:
            return await transport.send(None, MetadataRequest(topics=None), 9, timeout_ms=20_000, client_id="test")
        finally:
            await transport.close()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    authority = Authority(tmp_path)
    settings = Settings(
        listeners="SASL://127.0.0.1:0,SASLTLS://127.0.0.1:0",
        listener_security_protocol_map=",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        ssl_keystore_location=str(authority.issue("CN=localhost").keystore),
        connection_failed_authentication_delay_ms=0,
        emulator_users=SecretStr(json.dumps({"alice": "alice-secret"})),
        emulator_oauthbearer_unsecured=True,
    )
    async with App(Options(settings=settings, port=0)) as app:
        yield Node(app, tmp_path, authority)


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_client_logs_in_by_each_mechanism(node: Node, listener: str) -> None:
    for mechanism in MECHANISMS:
        assert isinstance(await node.ask(listener, node.settings(listener, mechanism)), MetadataResponse)


@pytest.mark.parametrize(
    ("mechanism", "change", "problem"),
    [
        ("PLAIN", {"sasl.password": "wrong"}, "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", {"sasl.password": "wrong"}, "invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", {"sasl.username": "mallory"}, "invalid credentials with SASL mechanism SCRAM-SHA-512"),
        ("OAUTHBEARER", {"expires": -60}, "invalid_token"),
    ],
)
async def test_a_login_that_is_refused_is_said(
    node: Node, mechanism: str, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(AuthenticationError, match=problem):
        await node.ask("SASLTLS", node.settings("SASLTLS", mechanism, **change))
    with pytest.raises(ProblemError, match=r"answered 401: the user, the password or the token is wrong"):
        await node.ask("HTTP", node.settings("HTTP", mechanism, **change))


async def test_a_broker_without_the_mechanism_says_which_it_has(tmp_path: Path) -> None:
    users = SecretStr("alice: alice-secret")
    settings = Settings(emulator_users=users, sasl_enabled_mechanisms="SCRAM-SHA-512")
    async with App(Options(settings=settings, port=0, kafka_port=0)) as app:
        transport = open_transport(
            [app.bootstrap_servers],
            security=ClientSecurityConfig(
                security_protocol="SASL_PLAINTEXT", sasl_username="alice", sasl_password=SecretStr("alice-secret")
            ),
        )
        with pytest.raises(AuthenticationError, match=r"UNSUPPORTED_SASL_MECHANISM; the broker has: SCRAM-SHA-512"):
            await transport.send(None, MetadataRequest(topics=None), 9, timeout_ms=20_000, client_id="test")
        await transport.close()


async def test_a_broker_whose_certificate_is_not_trusted_gets_no_password(node: Node) -> None:
    with pytest.raises(KafkaError, match="TLS handshake failed"):
        await node.ask("SASLTLS", node.settings("SASLTLS", "PLAIN", **{"ssl.truststore.location": ""}))
    with pytest.raises(TransportError, match="certificate verify failed"):
        await node.ask("HTTP", node.settings("HTTP", "PLAIN", **{"ssl.truststore.location": ""}))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism PLAIN without sasl.username and sasl.password"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "token.endpoint.url=file:PATH"),
        ({"security.protocol": "TLS"}, "security.protocol"),
    ],
)
def test_settings_that_lack_something_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace(".", r"\.")):
        checked_config(settings)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.pem")
    for setting in ("ssl.truststore.location", "ssl.keystore.location"):
        given = ClientSecurityConfig.model_validate({"security.protocol": "SSL", setting: missing})
        with pytest.raises(ValueError, match=rf"{setting} .*none\.pem: No such file"):
            open_transport(["a:1"], security=given)


def test_a_password_is_taken_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongOption, match=r"-c sasl\.password: expected as REJOIN_SASL_PASSWORD in the environment"):
        with_settings(ConsumerConfig, {}, ["sasl.password=secret"])
    monkeypatch.setenv("REJOIN_SASL_PASSWORD", "secret")
    pairs = ["security.protocol=SASL_SSL", "sasl.username=alice"]
    config = checked_config(with_settings(ConsumerConfig, {}, pairs))
    assert config.sasl_password.get_secret_value() == "secret"
    assert "secret" not in repr(config)


async def test_a_command_takes_its_security_from_a_file(node: Node, tmp_path: Path) -> None:
    given = {**node.settings("SASLTLS", "SCRAM-SHA-256"), "group.id": "of another program"}
    file = tmp_path / "client.properties"
    file.write_text("# comment\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))
    assert isinstance(await node.ask("SASLTLS", dict(security_from(str(file)))), MetadataResponse)
    for text, problem in (("security.protocol=TLS", "security.protocol"), (None, "No such file")):
        bad = tmp_path / f"{text}.properties"
        if text is not None:
            bad.write_text(text)
        with pytest.raises(WrongOption, match=problem):
            security_from(str(bad))


async def test_a_login_that_ends_is_repeated_without_a_new_connection(tmp_path: Path) -> None:
    settings = Settings(
        listeners="SASL://127.0.0.1:0",
        listener_security_protocol_map="SASL:SASL_PLAINTEXT",
        connections_max_reauth_ms=1_300,  # Kafka: a login within a second of the last one is refused.
        emulator_users=SecretStr(json.dumps({"alice": "alice-secret"})),
        emulator_oauthbearer_unsecured=True,
    )
    lost: list[bool] = []
    async with App(Options(settings=settings, port=0)) as app:
        node = Node(app, tmp_path, Authority(tmp_path))
        security = ClientSecurityConfig(**node.settings("SASL", "SCRAM-SHA-256"))
        transport = open_transport([f"127.0.0.1:{app.bound_ports['SASL']}"], security=security)
        transport.on_disconnect = lambda: lost.append(True)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            await asyncio.sleep(0.02)
            answer = await transport.send(None, METADATA, 9, timeout_ms=20_000, client_id="test")
            assert isinstance(answer, MetadataResponse)
        await transport.close()
    assert lost == []


async def test_consumer_and_producer_log_in(node: Node) -> None:
    server = f"127.0.0.1:{node.app.bound_ports['SASLTLS']}"
    settings = {name.replace(".", "_"): value for name, value in node.settings("SASLTLS", "SCRAM-SHA-512").items()}
    async with Producer(bootstrap_servers=server, **settings) as producer:
        await producer.send("orders", value="one")
    async with Consumer(
        "orders", bootstrap_servers=server, group_id="g", auto_offset_reset="earliest", **settings
    ) as consumer:
        records: list[Any] = []
        while not records:
            records = list(await consumer.poll(timeout_ms=5_000))
    assert [record.value for record in records] == [b"one"]
