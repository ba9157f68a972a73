"""Records how a broker changes SCRAM's users: ``python -m conformance.security.record_scram``.

One line for each step in ``tests/golden/security/scram.jsonl.gz``: the whole answer, or the outcome of a login.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN
from conformance.security.record_acls import Login
from conformance.security.record_acls import settings as settings_with_acls
from conformance.security.scram_steps import FIRST_USERS, ScramLogin, steps, whole
from rejoin.protocol.sasl.scram import HASHES, ScramClient

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "security" / "scram.jsonl.gz"
REPLAY_SECONDS: Final = 0.05
"""Longer than a broker needs to see a change of the controller's."""
NAMES: Final = (ADMIN, "dave")
Ask: TypeAlias = Callable[[Probe], Awaitable[Any]]
"""Sends a request and gives its answer in Kafka's JSON."""

_HANDSHAKE, _AUTHENTICATE = 17, 36


async def scram_login(port: int, wanted: ScramLogin) -> str:
    """Log in by SCRAM; the outcome is ``ok``, or the error of the step that was refused."""
    login = Login(*await asyncio.open_connection(HOST, port))
    client = ScramClient(wanted.mechanism, wanted.name, wanted.password, "a-nonce-of-the-client")
    try:
        name = wanted.mechanism.encode()
        await login.exchange(struct.pack(">hhihh", _HANDSHAKE, 1, 1, -1, len(name)) + name)
        token: bytes | None = client.first()
        while token is not None:
            answer = await login.exchange(struct.pack(">hhihi", _AUTHENTICATE, 1, 1, -1, len(token)) + token)
            (error, length) = struct.unpack_from(">hh", answer, 4)
            if error:
                return answer[8 : 8 + length].decode()
            at = 8 + max(0, length)
            (size,) = struct.unpack_from(">i", answer, at)
            token = client.evaluate(answer[at + 4 : at + 4 + size])
    finally:
        login.close()
    return "ok"


async def play(ask: Mapping[str, Ask], scram_port: int, pause_seconds: float = 0) -> list[Any]:
    """The outcome of each step of the script at a broker. ``ask`` sends requests of each principal."""
    outcomes: list[Any] = []
    for step in steps():
        if isinstance(step.what, ScramLogin):
            outcomes.append(await scram_login(scram_port, step.what))
            continue
        outcomes.append(whole(await ask[step.who](step.what)))
        if pause_seconds and step.what.api in {"AlterUserScramCredentials", "CreateAcls"}:
            await asyncio.sleep(pause_seconds)
    return outcomes


async def record(path: Path) -> None:
    """Play the script against a broker, and write what it answered."""
    settings = {
        **settings_with_acls(),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *HASHES)),
        "connection.failed.authentication.delay.ms": "0",
    }
    for mechanism in HASHES:
        key = f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config"
        settings[key] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    users = [f"{each}=[name={name},password={secret}]" for name, secret in FIRST_USERS.items() for each in HASHES]
    async with Cluster(await class_path(), 1, settings, listeners={"SASL": "SASL_PLAINTEXT"}, users=users) as cluster:
        await ready(cluster.addresses, {}, 1, 1)
        port = cluster.listener_ports[1]["SASL"]
        logins = [await Login.of(name, port) for name in NAMES]
        asks = {name: login.ask for name, login in zip(NAMES, logins, strict=True)}
        outcomes = await play(asks, port, REPLAY_SECONDS)
        for login in logins:
            login.close()
    lines = [{"kafka": kafka_version()}, *outcomes]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(outcomes)} steps recorded")


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
