"""TLS on both listeners: who is let in, as whom, and what is said of certificates that cannot be used."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from rejoin.__main__ import main
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options, StartFailed
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness
from tests.coordinator.service.kafka.frames import Peer, api_versions, find_coordinator
from tests.coordinator.service.security.conftest import Certificates

ALICE = "User:CN=alice,OU=Shop,O=Example"
LISTENERS = "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
GROUP_AUTHORIZATION_FAILED = 30


def port(node: Harness, listener: str) -> int:
    return node.app.bound_ports[listener]


class Recorder:
    """A log that keeps warnings."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))


async def refused(node: Harness, listener: str, context: ssl.SSLContext) -> bool:
    """Whether a connection ends before its first answer, in the handshake or right behind it."""
    try:
        async with Peer(port(node, listener), context) as peer:
            await peer.ask(api_versions(0))
    except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
        return True
    return False


async def test_both_listeners_have_tls(serve: Serve, certificates: Certificates) -> None:
    node = await serve(
        {"kafka_port": 0},
        ssl_certificate_location=str(certificates.server.certificate),
        ssl_key_location=str(certificates.server.key),
    )
    assert node.app.url.startswith("https://")
    assert [each.listener for each in node.app.endpoints] == ["SSL"]
    async with Peer(port(node, "SSL"), certificates.context()) as peer:
        assert (await peer.ask(api_versions(0)))[:2] == b"\0\0"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{node.app.url}/topics", ssl=certificates.context()) as answered:
            assert answered.status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{node.app.url}/topics")


async def test_a_listener_with_tls_and_one_without(serve: Serve, certificates: Certificates) -> None:
    node = await serve(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:SSL,HTTP:PLAINTEXT",
        ssl_keystore_location=str(certificates.server.keystore),
    )
    assert node.app.url.startswith("http://")
    async with Peer(port(node, "INSIDE")) as plain, Peer(port(node, "OUTSIDE"), certificates.context()) as encrypted:
        for peer in (plain, encrypted):
            assert (await peer.ask(api_versions(0)))[:2] == b"\0\0"


async def test_the_subject_of_a_certificate_is_the_principal(serve: Serve, certificates: Certificates) -> None:
    node = await serve(
        listeners=LISTENERS,
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        ssl_client_auth="requested",
        emulator_deny=(f"{ALICE}:DESCRIBE:group=hers",),
    )
    context = certificates.context
    for client, error in ((certificates.client, GROUP_AUTHORIZATION_FAILED), (None, 0)):
        async with Peer(port(node, "SSL"), context(client)) as peer:
            assert int.from_bytes((await peer.ask(find_coordinator("hers")))[:2], "big") == error


@pytest.mark.parametrize("client", ["none", "expired", "foreign"])
async def test_a_required_certificate_must_be_good(serve: Serve, certificates: Certificates, client: str) -> None:
    node = await serve(
        listeners=LISTENERS,
        listener_security_protocol_map="HTTP:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        ssl_client_auth="required",
    )
    shown = None if client == "none" else getattr(certificates, client)
    assert await refused(node, "SSL", certificates.context(shown))
    assert node.app.metrics.refused["none"] == 1
    assert not await refused(node, "SSL", certificates.context(certificates.client))


async def test_a_failed_handshake_is_counted_each_time_and_logged_once(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await serve(listeners=LISTENERS, ssl_keystore_location=str(certificates.server.keystore))
    log = Recorder()
    monkeypatch.setattr(node.app.service, "_log", log)

    def distrust(to: int) -> None:
        # asyncio's own client sends no alert.
        with socket.create_connection(("127.0.0.1", to)) as plain, pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    for to in (port(node, "SSL"), node.app.port):
        for _ in range(2):
            await asyncio.to_thread(distrust, to)
    async with asyncio.timeout(30):
        while node.app.metrics.refused["none"] < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert log.lines == [("tls_handshake_failed", {"reason": "tlsv1 alert unknown ca"})]


async def test_a_certificate_that_no_rule_fits_is_refused(serve: Serve, certificates: Certificates) -> None:
    node = await serve(
        listeners=LISTENERS,
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        ssl_client_auth="requested",
        ssl_principal_mapping_rules="RULE:^CN=(bob),.*$/$1/",
    )
    assert await refused(node, "SSL", certificates.context(certificates.client))
    assert node.app.metrics.refused["none"] == 1


async def test_a_self_signed_certificate_is_trusted_by_its_authority(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    node = await serve({"kafka_port": 0}, emulator_tls_self_signed=True, emulator_tls_ca_file=str(file))
    context = ssl.create_default_context(cafile=node.app.security.ca_location)
    for name in ("127.0.0.1", "localhost"):
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://{name}:{node.port}/readyz", ssl=context) as answered,
        ):
            assert answered.status == 200
    async with Peer(port(node, "SSL"), context) as peer:
        assert (await peer.ask(api_versions(0)))[:2] == b"\0\0"
    await node.app.stop()
    assert "ca.pem" in os.listdir(tmp_path), "a file that was asked for is kept"


async def test_the_temporary_file_of_the_authority_is_removed(serve: Serve) -> None:
    node = await serve(emulator_tls_self_signed=True)
    location = Path(node.app.security.ca_location)
    assert os.listdir(location.parent) == ["ca.pem"], "no key is left on disk"
    await node.app.stop()
    with pytest.raises(FileNotFoundError):
        os.listdir(location.parent)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ssl_keystore_location": "none.pem"}, "ssl.keystore.location none.pem: No such file"),
        ({"ssl_keystore_location": "{authority}"}, "expected a PEM file with a certificate and its private key"),
        ({"ssl_certificate_location": "{client}", "ssl_key_location": "{key}"}, "is not that of the certificate"),
        ({"ssl_keystore_location": "{locked}"}, "expected its password as REJOIN_SSL_KEY_PASSWORD"),
        ({"ssl_keystore_location": "a", "ssl_certificate_location": "b"}, "not both"),
        ({"listeners": "SSL://127.0.0.1:0"}, "a listener has TLS and no certificate"),
        ({"ssl_keystore_location": "{keystore}", "ssl_client_auth": "required"}, "expected ssl.truststore.location"),
        ({"ssl_keystore_location": "{keystore}", "ssl_truststore_location": "{key}"}, "PEM file with certificates"),
    ],
)
async def test_what_cannot_be_used_stops_the_start(
    certificates: Certificates, settings: dict[str, Any], problem: str
) -> None:
    files = {
        "authority": certificates.authority.location,
        "client": certificates.client.certificate,
        "key": certificates.server.key,
        "keystore": certificates.server.keystore,
        "locked": certificates.authority.issue("CN=locked", password="secret").keystore,
    }
    given = {name: value.format(**files) for name, value in settings.items()}
    with pytest.raises(StartFailed) as raised:
        await App(Options(settings=Settings(**given), port=0)).start()
    assert problem in str(raised.value)


async def test_an_encrypted_key_is_read_with_its_password(serve: Serve, certificates: Certificates) -> None:
    locked = certificates.authority.issue("CN=localhost", password="secret").keystore
    node = await serve(ssl_keystore_location=str(locked), ssl_key_password="secret")
    assert node.app.url.startswith("https://")


def test_a_missing_extra_is_one_line_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    module = "rejoin.coordinator.service.security.self_signed"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SystemExit):
        main(["serve", "--tls-self-signed", "--port", "0", "--log-level", "critical"])
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith(
        "serve: this command needs cryptography, which is not installed: pip install 'rejoin-kafka[security]'"
    )


@pytest.mark.parametrize(
    "listener", [{"host": "0.0.0.0"}, {"host": "::"}, {"settings": Settings(listeners="PLAINTEXT://0.0.0.0:0")}]
)
async def test_nothing_is_open_to_other_machines_without_a_login(listener: dict[str, Any]) -> None:
    with pytest.raises(StartFailed, match=r"other machines can reach it.*--users-file.*--insecure"):
        await App(Options(port=0, **listener)).start()


@pytest.mark.parametrize("users", ["", "alice: alice-secret"])
async def test_tokens_that_anyone_can_make_are_no_login(users: str) -> None:
    settings = Settings(emulator_oauthbearer_unsecured=True, emulator_users=SecretStr(users))
    with pytest.raises(StartFailed, match=r"anyone can make a token for it.*--insecure"):
        await App(Options(port=0, host="0.0.0.0", settings=settings)).start()


async def test_insecure_says_that_it_is_meant(serve: Serve) -> None:
    node = await serve({"host": "0.0.0.0", "kafka_port": 0}, emulator_insecure=True)
    async with Peer(port(node, "PLAINTEXT")) as peer:
        assert (await peer.ask(api_versions(0)))[:2] == b"\0\0"


async def test_certificates_of_clients_are_a_login(certificates: Certificates) -> None:
    settings = Settings(
        ssl_keystore_location=str(certificates.server.keystore),
        ssl_truststore_location=str(certificates.authority.location),
        ssl_client_auth="required",
    )
    async with asyncio.timeout(30), App(Options(settings=settings, host="0.0.0.0", port=0, kafka_port=0)) as app:
        assert app.url.startswith("https://")


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@pytest.mark.parametrize("listeners", ["{0}://127.0.0.1:0", "OTHER://127.0.0.1:0,{0}://127.0.0.1:0"])
@pytest.mark.parametrize("name", [*_PROTOCOLS, "DOCKER"])
async def test_a_listener_without_a_security_protocol_stops_the_start(name: str, listeners: str) -> None:
    others = ",".join(f"{each}:{each}" for each in _PROTOCOLS if each != name) + ",OTHER:PLAINTEXT"
    given = Settings(listener_security_protocol_map=others, listeners=listeners.format(name))
    with pytest.raises(StartFailed, match=rf"listener {name}: listener\.security\.protocol\.map has no security"):
        await App(Options(settings=given, port=0)).start()


async def test_nor_does_the_default_listener_start_without_one() -> None:
    given = Settings(listener_security_protocol_map="PLAINTEXT:PLAINTEXT", emulator_users=SecretStr("alice: secret"))
    with pytest.raises(StartFailed, match=r"listener SASL_PLAINTEXT: .* expected SASL_PLAINTEXT:PROTOCOL"):
        await App(Options(settings=given, port=0, kafka_port=0)).start()
