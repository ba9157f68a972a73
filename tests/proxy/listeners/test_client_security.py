"""TLS and logins on both sides of the proxy, as confluent-kafka and clients of single frames see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from rejoin.__main__ import main
from rejoin.client.transports.kafka.broker import Security
from rejoin.coordinator.config import Settings
from rejoin.coordinator.testing import BlockingGroupCoordinator, running_in_thread
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.proxy.listeners.client_login import ClientProtection
from rejoin.proxy.service import Proxy
from rejoin.proxy.watch import RequestWatch
from tests.certificates import Authority, KeyPair
from tests.proxy.wire import FrameClient, ScriptedBroker, Stand, proxied

ORDERS = [TopicPartition("orders", 0, 5)]
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20, "retry.backoff.ms": 10, "log_level": 0}
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class Made(NamedTuple):
    """An authority with a server's and a client's certificate, and one of another authority."""

    authority: Path
    server: KeyPair
    client: KeyPair
    foreign: KeyPair


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    other = Authority(folder, "Other CA")
    return Made(authority.location, authority.issue("CN=localhost"), authority.issue("CN=alice"), other.issue("CN=eve"))


def commits(servers: str, **settings: Any) -> list[int]:
    """The commits of a client through a proxy, by a connection to the coordinator's own listener there."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", **QUICK, **settings})
    try:
        consumer.commit(offsets=ORDERS, asynchronous=False)
        return [each.offset for each in consumer.committed(ORDERS, timeout=20)]
    finally:
        consumer.close()


def through(cluster: Mapping[str, Any], towards: Mapping[str, Any], own: Mapping[str, Any], **client: Any) -> list[int]:
    """Commits through a proxy before a cluster with these settings; ``own`` are those of the proxy's listeners."""
    with running_in_thread(topics={"orders": 1}, settings=dict(cluster)) as behind:
        named = {"bootstrap.servers": behind.bootstrap_servers, **towards}
        with running_in_thread(proxy=named, settings=dict(own)) as kit:
            found = commits(kit.bootstrap_servers, **client)
            group = BlockingGroupCoordinator(kit).wait_for_group("g", state="Empty", members=0)
            assert group is not None, "the kit's own connections to the cluster have the same security"
            return found


@pytest.mark.parametrize("is_protected", [False, True], ids=["plain-cluster", "tls-and-login-at-the-cluster"])
@pytest.mark.parametrize("checks", [False, True], ids=["plain-proxy", "tls-and-login-at-the-proxy"])
def test_each_side_has_tls_and_logins_of_its_own(made: Made, is_protected: bool, checks: bool) -> None:
    keys = {"ssl.keystore.location": str(made.server.keystore)}
    cluster = {**keys, "emulator.users": "robot: robot-secret"} if is_protected else {}
    towards = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(made.authority),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "robot",
        "sasl.password": "robot-secret",
    }
    own = {**keys, "emulator.users": "alice: alice-secret"} if checks else {}
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(made.authority),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
    }
    assert through(cluster, towards if is_protected else {}, own, **(client if checks else {})) == [5]


@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "tls"])
def test_a_login_passes_to_the_cluster(made: Made, has_tls: bool) -> None:
    keys = {"ssl.keystore.location": str(made.server.keystore)} if has_tls else {}
    with running_in_thread(topics={"orders": 1}, settings={**keys, "emulator.users": "alice: alice-secret"}) as behind:
        towards: dict[str, Any] = {"bootstrap.servers": behind.bootstrap_servers}
        if has_tls:
            towards |= {"security.protocol": "SSL", "ssl.truststore.location": str(made.authority)}
        with running_in_thread(proxy=towards, settings=keys) as kit:
            client = {"security.protocol": "SASL_SSL" if has_tls else "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
            client |= {"ssl.ca.location": str(made.authority), "sasl.username": "alice"}
            assert commits(kit.bootstrap_servers, **client, **{"sasl.password": "alice-secret"}) == [5]
            with pytest.raises(KafkaException):
                commits(kit.bootstrap_servers, **client, **{"sasl.password": "wrong", "session.timeout.ms": 1_000})


def test_certificates_of_clients_on_both_sides(made: Made) -> None:
    mutual = {
        "ssl.keystore.location": str(made.server.keystore),
        "ssl.truststore.location": str(made.authority),
        "ssl.client.auth": "required",
    }
    shown = str(made.client.keystore)
    towards = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(made.authority),
        "ssl.keystore.location": shown,
    }
    client = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(made.authority),
        "ssl.certificate.location": str(made.client.certificate),
        "ssl.key.location": str(made.client.key),
    }
    assert through(mutual, towards, mutual, **client) == [5]


# --- single frames


@asynccontextmanager
async def checking(watch: RequestWatch | None = None, **settings: Any) -> AsyncIterator[Stand]:
    """A proxy that checks logins, before a broker that asks for none."""
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse(), "ApiVersions": ApiVersionsResponse()})
    given = {"emulator_users": "alice: alice-secret", "connection_failed_authentication_delay_ms": 0, **settings}
    clients = ClientProtection(Settings(**given))
    try:
        async with proxied(broker, watch, clients=clients) as stand:
            yield stand
    finally:
        clients.close()


async def log_in(client: FrameClient, password: str = "alice-secret", version: int = 1) -> SaslAuthenticateResponse:
    handshake = await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (handshake.error_code, handshake.mechanisms[0]) == (ErrorCode.NONE, "PLAIN")
    answer = await client.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 1)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


async def test_a_login_at_the_proxy_does_not_reach_the_cluster() -> None:
    async with checking() as stand:
        client = await stand.client()
        await client.ask(ApiVersionsRequest(), 3)
        assert (await log_in(client)).error_code is ErrorCode.NONE
        assert await client.ask(HEARTBEAT) == HeartbeatResponse()
        assert [type(each.request) for each in stand.broker.seen] == [ApiVersionsRequest, HeartbeatRequest]


async def test_the_journal_names_the_user_who_logged_in_at_the_proxy() -> None:
    lines: list[str] = []
    async with checking(watch=RequestWatch(None, lines.append)) as stand:
        client = await stand.client()
        await log_in(client)
        await client.ask(HEARTBEAT)
    assert ['"principal":"User:alice"' in line for line in lines] == [True]
    assert "alice-secret" not in lines[0]


async def test_bare_tokens_are_checked_too() -> None:
    async with checking() as stand:
        client = await stand.client()
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        client.writer.write(b"\0\0\0\x13\0alice\0alice-secret")
        assert await client.frame() == b""
        assert await client.ask(HEARTBEAT) == HeartbeatResponse()


async def test_answers_of_a_login_keep_their_place() -> None:
    async with checking() as stand:
        client = await stand.client()
        client.send(ApiVersionsRequest(), 3)
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 1)
        client.send(HEARTBEAT)
        kinds = [type(await client.receive()).__name__ for _ in range(4)]
        expected = ["ApiVersionsResponse", "SaslHandshakeResponse", "SaslAuthenticateResponse", "HeartbeatResponse"]
        assert kinds == expected


@pytest.mark.parametrize(
    ("first", "version"),
    [(HEARTBEAT, None), (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 1)],
    ids=["heartbeat", "token"],
)
async def test_nothing_passes_before_the_login(first: Request, version: int | None) -> None:
    async with checking() as stand:
        client = await stand.client()
        client.send(first, version)
        client.send(HEARTBEAT)
        assert await client.at_end() == b""
        assert stand.broker.raw == []
        assert stand.proxy.counters.logins_refused + stand.proxy.counters.refused == 1


async def test_a_wrong_password_is_refused_and_too_many_of_an_address() -> None:
    async with checking(emulator_failed_logins_per_minute=2) as stand:
        for password in ("wrong", "wrong", "alice-secret"):
            client = await stand.client()
            refused = await log_in(client, password)
            assert refused.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.at_end() == b""
        assert "Too many logins from this address have failed" in (refused.error_message or "")
        assert stand.proxy.counters.logins_refused == 3
        assert stand.broker.raw == []


async def test_large_requests_are_refused_before_the_login() -> None:
    async with checking(sasl_server_max_receive_size=1_000) as stand:
        client = await stand.client()
        client.writer.write(b"\0\0\x10\0" + bytes(900))
        assert await client.at_end() == b""
        assert stand.proxy.counters.refused == 1


async def test_a_torn_handshake_ends_one_connection_and_is_counted(made: Made) -> None:
    settings = Settings(ssl_keystore_location=str(made.server.keystore))
    clients = ClientProtection(settings)
    async with proxied(clients=clients) as stand:
        for torn in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\x01", b"\0\0\0\x10" + bytes(16)):
            client = await stand.client()
            client.writer.write(torn)
            client.writer.write_eof()
            await client.at_end()
        assert stand.proxy.counters.handshakes_failed >= 2
        assert stand.proxy.counters.connections == 0, "nothing reaches the cluster before the handshake"


# --- towards the cluster


class ShortLogin:
    """A login that lasts for a second."""

    async def __call__(self, connection: object) -> int:
        return 1


async def test_a_connection_ends_before_its_login_at_the_broker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    later = Proxy.call_later

    def call_later(proxy: Proxy, seconds: float, call: Any) -> asyncio.TimerHandle:
        waited.append(seconds)
        return later(proxy, seconds, call)

    monkeypatch.setattr(Proxy, "call_later", call_later)
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
    async with proxied(broker, upstream=Security(authenticate=ShortLogin())) as stand:
        client = await stand.client()
        client.send(HEARTBEAT)
        assert await client.receive() == HeartbeatResponse()
        assert await client.at_end() == b""
        assert waited == [0.85 / 1_000]


# --- options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("-c group.max.size=3", "group.max.size: a proxy has no such setting; it has connection.failed"),
        ("-c ssl.keystore.location=/nowhere.pem", "ssl.keystore.location /nowhere.pem: No such file"),
        ("-c ssl.key.password=secret", "as REJOIN_SSL_KEY_PASSWORD"),
        ("-c ssl.client.auth=maybe", "ssl.client.auth"),
        ("--listen 0.0.0.0:0 --command-config CONFIG", "other machines can reach it, and its clients need no login"),
    ],
)
def test_options_that_cannot_be_used(
    options: str, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=robot\nsasl.password=secret\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["proxy", "--bootstrap-server", "127.0.0.1:1", *options.replace("CONFIG", str(config)).split()])
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
