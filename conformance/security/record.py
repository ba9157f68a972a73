"""Records the scripts of logins from a broker that it starts: ``python -m conformance.security.record``.

One file for each listener below ``tests/golden/security``, a line for each script with the answers of its steps.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
import tempfile
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.login import LoginPlayer, load
from tests.certificates import Authority, KeyPair

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "security"
LISTENERS: Final = {
    "SASL": "SASL_PLAINTEXT",
    "RELOGIN": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "MTLS": "SSL",
    "REQUESTED": "SSL",
}
USERS: Final = {"alice": "alice-secret", "bob": "bob-secret"}
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULES: Final = "org.apache.kafka.common.security"
_CREATE_DELEGATION_TOKEN: Final = 38


class Certificates:
    """A server's certificate, and contexts of clients that show none, a good one, or a bad one."""

    def __init__(self, folder: Path) -> None:
        self.authority, other = Authority(folder), Authority(folder, "Other CA")
        self.server = self.authority.issue("CN=localhost")
        shown: dict[str, KeyPair | None] = {
            "default": None,
            "none": None,
            "client": self.authority.issue("CN=alice,OU=Shop,O=Example"),
            "details": self.authority.issue(
                r"1.2.840.113549.1.9.1=a@example.org,CN=A\, B \+ C,OU=Ünit,DC=example,ST=S,L=L,C=DE"
            ),
            "expired": self.authority.issue("CN=alice", days=-1),
            "foreign": other.issue("CN=mallory"),
        }
        self.contexts: dict[str, ssl.SSLContext | None] = {name: self._context(pair) for name, pair in shown.items()}
        self.contexts["no-tls"] = None

    def _context(self, shown: KeyPair | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.location)
        if shown is not None:
            context.load_cert_chain(shown.keystore)
        return context


def broker_settings(certificates: Certificates) -> dict[str, str]:
    """Settings of a broker with all listeners."""
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    login = {
        "plain": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kafka";',
    }
    settings = {
        "offsets.topic.num.partitions": "1",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "0",
        "connections.max.idle.ms": "3000",
        "delegation.token.secret.key": "a-secret-of-this-recording",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server.keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority.location),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.requested.ssl.client.auth": "requested",
    }
    for listener, protocol in LISTENERS.items():
        if protocol.startswith("SASL"):
            for mechanism, text in login.items():
                prefix = f"listener.name.{listener.lower()}.{mechanism}"
                settings[f"{prefix}.sasl.jaas.config"] = text
                if listener == "RELOGIN":
                    settings[f"{prefix}.connections.max.reauth.ms"] = "3600000"
    return settings


async def principal(player: LoginPlayer) -> Any:
    """The owner of a delegation token that the client of this connection is given."""
    answer = await player.request(_CREATE_DELEGATION_TOKEN, 1, struct.pack(">iq", 0, 60_000))
    (error,) = struct.unpack_from(">h", answer)
    if error:
        return {"error": error}
    at, parts = 2, []
    for _ in range(2):
        (size,) = struct.unpack_from(">h", answer, at)
        parts.append(answer[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return ":".join(parts)


async def record(folder: Path) -> None:
    """Play every script against a broker, and write what it answered."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        certificates = Certificates(Path(temporary))
        users = [
            f"{mechanism}=[name={name},password={password}]"
            for name, password in USERS.items()
            for mechanism in MECHANISMS
            if mechanism.startswith("SCRAM")
        ]
        settings = broker_settings(certificates)
        async with Cluster(await class_path(), 1, settings, listeners=LISTENERS, users=users) as cluster:
            await ready(cluster.addresses, {}, 1, 1)
            ports = {**cluster.listener_ports[1], "PLAINTEXT": cluster.ports[1]}
            for listener, scripts in load().items():
                has_tls = LISTENERS.get(listener, "").endswith("SSL")
                contexts = certificates.contexts if has_tls else dict.fromkeys(certificates.contexts)
                lines = []
                for name, steps in scripts.items():
                    answers = await LoginPlayer(HOST, ports[listener], contexts, principal).play(steps)
                    lines.append({"script": name, "answers": answers})
                write(folder / f"{listener.lower()}.jsonl", lines)
                print(f"{listener}: {len(lines)} scripts recorded")


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """The version of the broker, then one line for each script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"kafka": kafka_version()}
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (head, *lines)))


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
