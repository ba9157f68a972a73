"""How clients log in: each mechanism, over TLS and without, and what must be refused.

    python -m conformance.clients.logins [CLIENT ...]

A client's program is given a file with these logins. With each it produces one record to ``logins`` and consumes one,
and prints a line of JSON as its life does. The table is written to docs/clients.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import jwt

from conformance.clients.node import Node, running
from conformance.clients.programs import HERE, JAVA, PYTHON, class_path, go_life, javascript_life
from conformance.clients.step_table import StepTable, play
from tests.certificates import Authority, KeyPair

LOGINS: Final = (
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
    "PLAIN over TLS",
    "SCRAM-SHA-256 over TLS",
    "SCRAM-SHA-512 over TLS",
    "OAUTHBEARER over TLS",
    "a certificate",
    "refused: wrong password",
    "refused: mechanism that is not enabled",
    "refused: expired certificate of the broker",
)
TABLE: Final = StepTable("client-logins", "login", LOGINS, HERE / "logins.jsonl")
SECONDS: Final = 600.0

_REFUSED: Final = "refused: "
_LISTENERS: Final = {"SASL": "SASL_PLAINTEXT", "SASLTLS": "SASL_SSL", "MTLS": "SSL"}


@contextmanager
def logins() -> Iterator[Path]:
    """A file with the logins, whose nodes run meanwhile."""
    with tempfile.TemporaryDirectory(prefix="logins-") as name, ExitStack() as stack:
        folder = Path(name)
        authority = Authority(folder)
        users = folder / "users.yaml"
        users.write_text("alice: alice-secret\n")
        good = stack.enter_context(_node(users, authority, authority.issue("CN=localhost")))
        expired = authority.issue("CN=localhost", days=-1)
        limited = stack.enter_context(_node(users, authority, expired, "-c", "sasl.enabled.mechanisms=SCRAM-SHA-512"))
        client = authority.issue("CN=alice")
        file = folder / "logins.json"
        made = [_login(each, _addresses(good), _addresses(limited), authority, client) for each in LOGINS]
        file.write_text(json.dumps(made))
        yield file


def judged(name: str, problem: str) -> str:
    """The problem of a login: one that must be refused has none if it was."""
    if not name.startswith(_REFUSED):
        return problem
    return "" if problem else "it was let in"


def _node(users: Path, authority: Authority, server: KeyPair, *more: str) -> AbstractContextManager[Node]:
    listeners = ",".join(f"{name}://127.0.0.1:0" for name in _LISTENERS)
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in _LISTENERS.items())
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": f"{protocols},HTTP:PLAINTEXT",
        "ssl.keystore.location": server.keystore,
        "ssl.truststore.location": authority.location,
        "ssl.client.auth": "requested",
        "emulator.oauthbearer.unsecured": "true",
        "emulator.deny": "User:ANONYMOUS:WRITE:topic=*,User:ANONYMOUS:READ:topic=*",
    }
    pairs = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return running("--users-file", str(users), "--topic", "logins:1", *pairs, *more)


def _addresses(node: Node) -> dict[str, str]:
    with urllib.request.urlopen(f"{node.url}/cluster", timeout=10) as answered:
        found: dict[str, str] = json.load(answered)["nodes"][0]["listeners"]
    return found


def _login(
    name: str, good: dict[str, str], limited: dict[str, str], authority: Authority, client: KeyPair
) -> dict[str, str]:
    words = name.removeprefix(_REFUSED)
    listener = "SASLTLS" if "TLS" in words or "password" in words else "SASL"
    nodes = limited if "expired" in words or "mechanism" in words else good
    mechanism = words.removesuffix(" over TLS") if not name.startswith(_REFUSED) else "PLAIN"
    if "certificate" in words:
        listener, mechanism = ("SASLTLS", "SCRAM-SHA-512") if "expired" in words else ("MTLS", "")
    return {
        "name": name,
        "server": nodes[listener],
        "protocol": _LISTENERS[listener],
        "mechanism": mechanism,
        "user": "alice",
        "password": "wrong" if "password" in words else "alice-secret",
        "token": jwt.encode({"sub": "alice", "iat": time.time() - 60, "exp": time.time() + 3_600}, "", "none"),
        "ca": str(authority.location),
        "certificate": str(client.certificate) if listener == "MTLS" else "",
        "key": str(client.key) if listener == "MTLS" else "",
        "keystore": str(client.keystore) if listener == "MTLS" else "",
    }


# --- programs


def _java() -> list[str]:
    return [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "java" / "Login.java")]


def _python(name: str) -> list[str]:
    return [sys.executable, "-m", "tests.real_clients.logins", name]


PROGRAMS: Final[dict[str, Callable[[], list[str]]]] = {
    **{name: partial(_python, name) for name in PYTHON},
    "Java": _java,
    "franz-go": partial(go_life, "franzlogin"),
    "sarama": partial(go_life, "saramalogin"),
    "segmentio/kafka-go": partial(go_life, "segmentiologin"),
    "KafkaJS": partial(javascript_life, "kafkajs-login"),
    "@platformatic/kafka": partial(javascript_life, "platformatic-login"),
}


def run_client(name: str, version: str) -> bool:
    """Let a client log in by each way, print how it went, and keep the results."""
    command = PROGRAMS[name]()
    with logins() as file:
        lines = play([*command, str(file)], SECONDS)
    problems = {line["step"]: judged(line["step"], line["problem"]) for line in lines}
    for line in lines:
        said = f" ({line['problem'][:150]})" if line["step"].startswith(_REFUSED) else ""
        print(f"{name} {version}  {line['step']}: {problems[line['step']] or 'passed'}{said}", flush=True)
    TABLE.keep(name, version, problems)
    return not any(problems.values())


if __name__ == "__main__":
    sys.exit(TABLE.run("conformance.clients.logins", PROGRAMS, run_client))
