"""Real clients log in by each mechanism, over TLS and without; what is wrong is refused, and nothing is produced."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rejoin.coordinator.testing import GroupCoordinator, running_in_thread
from tests.certificates import Authority, KeyPair
from tests.real_clients.logins import LIBRARIES, TOPIC, Login

pytestmark = [
    pytest.mark.xdist_group("logins"),
    # aiokafka leaves a connection behind on which it was refused.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LISTENERS = {"SASL": "SASL_PLAINTEXT", "SASLTLS": "SASL_SSL", "MTLS": "SSL"}


@pytest.fixture(scope="module", autouse=True)
def left_behind() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> KeyPair:
    return authority.issue("CN=alice")


def settings(authority: Authority, server: KeyPair, **more: Any) -> dict[str, Any]:
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in LISTENERS.items()),
        "ssl.keystore.location": str(server.keystore),
        "ssl.truststore.location": str(authority.location),
        "ssl.client.auth": "requested",
        "connection.failed.authentication.delay.ms": 0,
        "emulator.users": json.dumps({"alice": "alice-secret"}),
        "emulator.oauthbearer.unsecured": True,
        "emulator.deny": ("User:ANONYMOUS:WRITE:topic=*", "User:ANONYMOUS:READ:topic=*"),
        **more,
    }


@pytest.fixture(scope="module")
def node(authority: Authority) -> Iterator[GroupCoordinator]:
    with running_in_thread(settings=settings(authority, authority.issue("CN=localhost")), topics={TOPIC: 1}) as node:
        yield node


def server(node: GroupCoordinator, listener: str) -> str:
    return f"127.0.0.1:{node.app.bound_ports[listener]}"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("listener", ["SASL", "SASLTLS"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in(
    node: GroupCoordinator, authority: Authority, library: str, listener: str, mechanism: str
) -> None:
    login = Login(LISTENERS[listener], authority.location, mechanism)
    assert LIBRARIES[library](server(node, listener), login, b"value") == b"value"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_certificate_is_a_login(
    node: GroupCoordinator, authority: Authority, certificate: KeyPair, library: str
) -> None:
    login = Login("SSL", authority.location, keystore=certificate.keystore)
    assert LIBRARIES[library](server(node, "MTLS"), login, b"value") == b"value"


def problem(library: str, server: str, login: Login, caplog: pytest.LogCaptureFixture) -> str:
    """What a client says that is not let in: some raise the reason, others log it."""
    with pytest.raises(Exception, match=r".") as raised:
        LIBRARIES[library](server, replace(login, patience_seconds=5.0), b"refused")
    return f"{raised.value} {caplog.text}".lower()


# kafka-python tries on until its time is over.
@pytest.mark.parametrize(
    ("library", "mechanism"),
    [
        ("aiokafka", "PLAIN"),
        ("aiokafka", "SCRAM-SHA-512"),
        ("confluent-kafka", "PLAIN"),
        ("confluent-kafka", "SCRAM-SHA-512"),
        ("kafka-python", "SCRAM-SHA-256"),
    ],
)
def test_a_wrong_password_is_refused(
    node: GroupCoordinator, authority: Authority, library: str, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login("SASL_SSL", authority.location, mechanism, password="wrong")
    assert "authentication failed" in problem(library, server(node, "SASLTLS"), login, caplog)


@pytest.fixture(scope="module")
def limited(authority: Authority) -> Iterator[GroupCoordinator]:
    """A node whose certificate has expired, and which has one mechanism."""
    expired = authority.issue("CN=localhost", days=-1)
    given = settings(authority, expired, **{"sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    with running_in_thread(settings=given, topics={TOPIC: 1}) as node:
        yield node


@pytest.mark.parametrize("library", ["aiokafka", "confluent-kafka"])
def test_another_mechanism_is_refused(
    limited: GroupCoordinator, authority: Authority, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login("SASL_PLAINTEXT", authority.location, "PLAIN")
    assert "mechanism" in problem(library, server(limited, "SASL"), login, caplog)


@pytest.mark.parametrize("library", ["aiokafka", "confluent-kafka"])
def test_an_expired_certificate_of_a_broker_is_not_trusted(
    limited: GroupCoordinator, authority: Authority, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login("SASL_SSL", authority.location, "SCRAM-SHA-512")
    assert "certificate" in problem(library, server(limited, "SASLTLS"), login, caplog)
