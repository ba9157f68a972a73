"""Records how a broker handles delegation tokens: ``python -m conformance.security.record_tokens``.

One line for each step in ``tests/golden/security/tokens.jsonl.gz``: the whole answer, or the outcome of a login.
Ids and HMACs are replaced by the labels of their tokens, and instants by what is known of the token.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_probes import Probe, every_acl
from conformance.security.acl_sequences import ADMIN
from conformance.security.record_acls import Login
from conformance.security.record_acls import settings as settings_with_acls
from conformance.security.token_steps import (
    CHECK_INTERVAL_MS,
    DISABLED,
    EXPIRY_TIME_MS,
    MAX_LIFETIME_MS,
    NOT_LOGGED_IN,
    PRINCIPALS,
    ROUNDED_MS,
    SECRET,
    Action,
    Creation,
    Pause,
    TokenLogin,
    TokenStep,
    describe,
    errors_named,
    in_order,
    steps,
)
from rejoin.protocol.sasl.exchange import AuthenticationFailed
from rejoin.protocol.sasl.scram import HASHES, ScramClient

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "security" / "tokens.jsonl.gz"
REPLAY_SECONDS: Final = 0.1
"""Longer than a controller needs to see a change of its own that the broker has seen."""

_LOOKS: Final = 200

CLOSED: Final = "closed"
Exchange: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Sends a request and gives its answer, both without their length."""

_HANDSHAKE, _AUTHENTICATE = 17, 36
_ALMOST_MS: Final = 2_000


@dataclass
class KnownToken:
    """A token that was made, as its last answer says."""

    token_id: str
    hmac: str
    issued_at: int
    max_at: int
    expires_at: int


class TokenPlayer(ABC):
    """Plays steps at a broker, and makes their answers comparable."""

    def __init__(self) -> None:
        self.known: dict[str, KnownToken] = {}
        """The tokens that were made, by label."""

    @abstractmethod
    async def ask(self, who: str, probe: Probe) -> Any:
        """The answer to a principal's request in Kafka's JSON; none where the connection ends instead."""

    @abstractmethod
    async def log_in(self, login: TokenLogin) -> tuple[str, int]:
        """The outcome of a login, ``ok`` or the error, and how long it lasts in milliseconds."""

    @abstractmethod
    async def pass_time(self, length_ms: int) -> None:
        """Let time pass."""

    @abstractmethod
    def now(self) -> int:
        """The time in milliseconds since 1970."""

    async def play(self, script: Iterable[TokenStep]) -> list[Any]:
        """The outcome of each step."""
        return [await self._outcome(step) for step in script]

    async def play_one(self, who: str, action: Action) -> Any:
        """The outcome of one step."""
        return await self._outcome(TokenStep(who, action))

    async def _outcome(self, step: TokenStep) -> Any:
        match step.what:
            case Pause(length_ms):
                await self.pass_time(length_ms)
                return None
            case TokenLogin() as login:
                outcome, lifetime_ms = await self.log_in(self.filled(login))
                known = self.known.get(login.name.removeprefix("<id:").removesuffix(">"))
                if known is not None and lifetime_ms:
                    is_exact = abs(self.now() + lifetime_ms - known.expires_at) < _ALMOST_MS
                    return [outcome, "until it expires" if is_exact else lifetime_ms]
                return [outcome, lifetime_ms]
            case Creation(label, probe):
                answer = await self.ask(step.who, self._filled(probe))
                return CLOSED if answer is None else self._created(label, answer)
            case Probe() as probe:
                answer = await self.ask(step.who, self._filled(probe))
                return CLOSED if answer is None else self._answered(probe, answer)

    # --- labels in requests

    def filled(self, login: TokenLogin) -> TokenLogin:
        """A login with ids and HMACs in place of labels."""
        return login._replace(**self._fill(login._asdict()))

    def _filled(self, probe: Probe) -> Probe:
        return probe._replace(body=self._fill(probe.body))

    def _fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._fill(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._fill(each) for each in value]
        if not isinstance(value, str) or not value.startswith(("<id:", "<hmac:")):
            return value
        kind, _, label = value[1:-1].partition(":")
        known = self.known.get(label)
        if kind == "id":
            return f"no token {label}" if known is None else known.token_id
        return base64.b64encode(f"no token {label}".encode()).decode() if known is None else known.hmac

    # --- answers without what is random

    def _created(self, label: str, answer: Any) -> Any:
        if answer["errorCode"] == 0:
            expected = hmac.digest(SECRET.encode(), answer["tokenId"].encode(), hashlib.sha512)
            assert answer["hmac"] == base64.b64encode(expected).decode(), answer
            assert len(base64.urlsafe_b64decode(f"{answer['tokenId']}==")) == 16, answer
            issued_at, expires_at = answer["issueTimestampMs"], answer["expiryTimestampMs"]
            known = KnownToken(answer["tokenId"], answer["hmac"], issued_at, answer["maxTimestampMs"], expires_at)
            self.known[label] = known
            answer = {
                **answer,
                "issueTimestampMs": self._rounded(issued_at),
                "expiryTimestampMs": expires_at - issued_at,
                "maxTimestampMs": known.max_at - issued_at,
                "tokenId": label,
                "hmac": label,
            }
        return errors_named(answer)

    def _answered(self, probe: Probe, answer: Any) -> Any:
        if probe.api == "DescribeDelegationToken":
            answer = {**answer, "tokens": in_order([self._described(token) for token in answer["tokens"]])}
        elif probe.api == "FindCoordinator":
            coordinators = [{"key": each["key"], "errorCode": each["errorCode"]} for each in answer["coordinators"]]
            answer = {"coordinators": coordinators}
        elif answer.get("expiryTimestampMs", 0) > 0:
            label = probe.body["hmac"].removeprefix("<hmac:").removesuffix(">")
            known, at = self.known[label], answer["expiryTimestampMs"]
            known.expires_at = at
            answer = {**answer, "expiryTimestampMs": "max" if at == known.max_at else self._rounded(at)}
        return errors_named(answer)

    def _described(self, token: Any) -> Any:
        label, known = next(each for each in self.known.items() if each[1].token_id == token["tokenId"])
        now_known = (known.hmac, known.issued_at, known.max_at, known.expires_at)
        described = (token["hmac"], token["issueTimestamp"], token["maxTimestamp"], token["expiryTimestamp"])
        assert described == now_known, (token, known)
        hidden = {"hmac", "issueTimestamp", "maxTimestamp", "expiryTimestamp"}
        return {"tokenId": label, **{key: value for key, value in token.items() if key not in {*hidden, "tokenId"}}}

    def _rounded(self, instant: int) -> int:
        return round((instant - self.now()) / ROUNDED_MS) * ROUNDED_MS


async def scram_login(exchange: Exchange, wanted: TokenLogin) -> tuple[str, int]:
    """Log in; the outcome is ``ok`` or the error, and how long the login lasts in milliseconds."""
    client = ScramClient(
        wanted.mechanism,
        wanted.name,
        wanted.password,
        "a-nonce-of-the-client",
        extensions=wanted.extensions,
        authorization_id=wanted.authorization_id,
    )
    lifetime_ms, name = 0, wanted.mechanism.encode()
    await exchange(struct.pack(">hhihh", _HANDSHAKE, 1, 1, -1, len(name)) + name)
    token: bytes | None = client.first()
    while token is not None:
        answer = await exchange(struct.pack(">hhihi", _AUTHENTICATE, 1, 1, -1, len(token)) + token)
        (error, length) = struct.unpack_from(">hh", answer, 4)
        if error:
            return answer[8 : 8 + length].decode(), 0
        at = 8 + max(0, length)
        (size,) = struct.unpack_from(">i", answer, at)
        (lifetime_ms,) = struct.unpack_from(">q", answer, at + 4 + size)
        try:
            token = client.evaluate(answer[at + 4 : at + 4 + size])
        except AuthenticationFailed as problem:
            return f"client: {problem}", 0
    return "ok", lifetime_ms


class SocketPlayer(TokenPlayer):
    """Plays at a broker that listens."""

    def __init__(self, connections: dict[str, Login], port: int, pause_seconds: float) -> None:
        super().__init__()
        self._connections = connections
        self._port = port
        self._pause_seconds = pause_seconds
        self._acls = 0

    def now(self) -> int:
        return int(time.time() * 1_000)

    async def pass_time(self, length_ms: int) -> None:
        await asyncio.sleep(length_ms / 1_000)

    async def ask(self, who: str, probe: Probe) -> Any:
        try:
            answer = await self._connections[who].ask(probe)
        except (ValueError, ConnectionError):
            return None
        match probe.api:
            case "CreateAcls":
                self._acls += sum(result["errorCode"] == 0 for result in answer["results"])
                await self._settle(Probe("DescribeAcls", 3, every_acl()), self._has_acls)
            case "CreateDelegationToken" if answer["errorCode"] == 0:
                await self._settle(describe(), lambda seen: answer["tokenId"] in _expiries(seen, "tokenId"))
            case "RenewDelegationToken" | "ExpireDelegationToken" if answer["errorCode"] == 0:
                hmac_text = probe.body["hmac"]
                removed = probe.body.get("expiryTimePeriodMs", 0) < 0
                expiry = None if removed else answer["expiryTimestampMs"]
                await self._settle(describe(), lambda seen: _expiries(seen, "hmac").get(hmac_text) == expiry)
        return answer

    async def _settle(self, look: Probe, is_seen: Callable[[Any], bool]) -> None:
        """Wait until the broker shows a change."""
        for _ in range(_LOOKS):
            if is_seen(await self._connections[ADMIN].ask(look)):
                await asyncio.sleep(self._pause_seconds)
                return
            await asyncio.sleep(0.02)
        raise TimeoutError(f"{look.api}: a change is not seen")

    def _has_acls(self, seen: Any) -> bool:
        return sum(len(resource["acls"]) for resource in seen["resources"]) == self._acls

    async def log_in(self, login: TokenLogin) -> tuple[str, int]:
        connection = await Login.connect(HOST, self._port)
        try:
            return await scram_login(connection.exchange, login)
        finally:
            if login.stays:
                self._connections[login.stays] = connection
            else:
                connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()


def _expiries(answer: Any, name: str) -> dict[str, int]:
    """When each token of an answer expires, by its id or its HMAC."""
    return {token[name]: token["expiryTimestamp"] for token in answer["tokens"]}


def _settings(secret: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    users = " ".join(f'user_{name}="{name}-secret"' for name in PRINCIPALS)
    given = {
        **settings_with_acls(),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *HASHES)),
        "listener.name.sasl.plain.sasl.jaas.config": f"{module} required {users};",
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.max.lifetime.ms": str(MAX_LIFETIME_MS),
        "delegation.token.expiry.time.ms": str(EXPIRY_TIME_MS),
        "delegation.token.expiry.check.interval.ms": str(CHECK_INTERVAL_MS),
    }
    for mechanism in HASHES:
        key = f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config"
        given[key] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return given | ({"delegation.token.secret.key": secret} if secret else {})


async def _played(secret: str, script: Iterable[TokenStep]) -> list[Any]:
    listeners = {"SASL": "SASL_PLAINTEXT"}
    async with Cluster(await class_path(), 1, _settings(secret), listeners=listeners) as cluster:
        await ready(cluster.addresses, {}, 1, 1)
        port = cluster.listener_ports[1]["SASL"]
        connections = {name: await Login.of(name, port) for name in PRINCIPALS}
        connections[NOT_LOGGED_IN] = await Login.connect(HOST, cluster.ports[1])
        player = SocketPlayer(connections, port, REPLAY_SECONDS)
        outcomes = await player.play(script)
        player.close()
    return outcomes


async def record(path: Path) -> None:
    """Play both scripts against brokers, and write what they answered."""
    began = time.monotonic()
    lines = [{"kafka": kafka_version()}, *await _played("", DISABLED), *await _played(SECRET, steps())]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(lines) - 1} steps recorded in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
