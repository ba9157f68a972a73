"""Records what a broker with ACLs answers: ``python -m conformance.security.record_acls``.

One line for each sequence in ``tests/golden/security/acls.jsonl.gz``: the outcomes of its steps.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import time
from pathlib import Path
from typing import Any, Final, Self

from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_probes import Probe, every_acl
from conformance.security.acl_sequences import ADMIN, CLEAR, PRINCIPALS, TOPICS, outcome, sequences
from rejoin.protocol.registry import DEFINED
from rejoin.protocol.wire.codec import codec_of

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "security" / "acls.jsonl.gz"
PATIENCE_SECONDS: Final = 10.0
_HANDSHAKE, _AUTHENTICATE = 17, 36


class Login:
    """A connection of one principal, over SASL/PLAIN."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, host: str, port: int) -> Self:
        """A connection that has not logged in."""
        return cls(*await asyncio.open_connection(host, port))

    @classmethod
    async def of(cls, name: str, port: int) -> Self:
        login = await cls.connect(HOST, port)
        await login.exchange(struct.pack(">hhihh", _HANDSHAKE, 1, 1, -1, 5) + b"PLAIN")
        token = f"\0{name}\0{name}-secret".encode()
        answer = await login.exchange(struct.pack(">hhihi", _AUTHENTICATE, 1, 1, -1, len(token)) + token)
        assert answer[4:6] == b"\0\0", answer
        return login

    async def exchange(self, frame: bytes) -> bytes:
        """The answer to a request, both without their length."""
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        async with asyncio.timeout(PATIENCE_SECONDS):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)

    async def ask(self, probe: Probe) -> Any:
        """The answer to a probe in Kafka's JSON."""
        api = next(each for each in DEFINED.values() if each.name == probe.api)
        codec = codec_of(api.key, probe.version)
        assert codec is not None, f"{probe.api} {probe.version}"
        request = api.request.parse(json.dumps(probe.body), probe.version)
        frame = codec.request_frame(1, "test", request)
        try:
            answer = await self.exchange(bytes(frame[4:]))
        except (TimeoutError, asyncio.IncompleteReadError) as problem:
            raise ValueError(f"{probe}: not answered: {problem!r}") from problem
        _, response = codec.read_response_frame(answer)
        return json.loads(response.to_json(probe.version))

    def close(self) -> None:
        self._writer.close()


def settings() -> dict[str, str]:
    """Settings of a broker with ACLs, and a listener for principals."""
    users = " ".join(f'user_{name}="{name}-secret"' for name in (ADMIN, *PRINCIPALS))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.partition.verification.enable": "false",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{module} required {users};",
    }


async def settle(admin: Login, cluster_acls: int) -> int:
    """Wait until the broker's authorizer has all changes: two looks in a row are alike."""
    before = -1
    for _ in range(200):
        answer = await admin.ask(Probe("DescribeAcls", 3, every_acl()))
        now = sum(len(resource["acls"]) for resource in answer["resources"])
        if now == before and now == cluster_acls:
            return now
        before = now
        await asyncio.sleep(0.01)
    raise TimeoutError(f"{before} ACLs instead of {cluster_acls}")


async def record(path: Path) -> None:
    """Play every sequence against a broker, and write what it answered."""
    listeners = {"SASL": "SASL_PLAINTEXT"}
    async with Cluster(await class_path(), 1, settings(), listeners=listeners) as cluster:
        await ready(cluster.addresses, dict.fromkeys(TOPICS, 1), 1, 1)
        port = cluster.listener_ports[1]["SASL"]
        logins = {name: await Login.of(name, port) for name in (ADMIN, *PRINCIPALS)}
        lines: list[Any] = [{"kafka": kafka_version()}]
        began = time.monotonic()
        for name, steps in sequences().items():
            known: set[str] = set()
            answers = []
            for who, probe in (CLEAR, *steps):
                answer = await logins[who].ask(probe)
                answers.append(outcome(answer))
                if who == ADMIN and probe.api in {"CreateAcls", "DeleteAcls"}:
                    follow(known, probe, answer)
                    await settle(logins[ADMIN], len(known))
            lines.append({"sequence": name, "answers": answers[1:]})
        for login in logins.values():
            login.close()
        print(f"{len(lines) - 1} sequences recorded in {time.monotonic() - began:.0f} s")
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def follow(known: set[str], probe: Probe, answer: Any) -> None:
    """Keep the ACLs that there must be."""
    if probe.api == "CreateAcls":
        for entry, result in zip(probe.body["creations"], answer["results"], strict=True):
            if result["errorCode"] == 0:
                known.add(json.dumps(list(entry.values())))
        return
    for result in answer["filterResults"]:
        for acl in result["matchingAcls"]:
            fields = [value for key, value in acl.items() if key not in {"errorCode", "errorMessage"}]
            known.discard(json.dumps(fields))


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
