"""Requests about delegation tokens have the answers, and logins by them the outcomes, that Apache Kafka gave them."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import SecretStr

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN
from conformance.security.record_tokens import GOLDEN, TokenPlayer, scram_login
from conformance.security.token_steps import (
    CHECK_INTERVAL_MS,
    DISABLED,
    EXPIRY_TIME_MS,
    MAX_LIFETIME_MS,
    NOT_LOGGED_IN,
    SECRET,
    TokenLogin,
    TokenStep,
    steps,
)
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import ANONYMOUS, Context
from rejoin.coordinator.service.security.authenticator import Authenticator, Login
from rejoin.coordinator.service.security.logins import Logins
from rejoin.coordinator.service.security.stored_credentials import StoredCredentials
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.driver import DrivenNode

LENGTH_BYTES: Final = 4


class _Session(NamedTuple):
    """A client that has logged in."""

    login: Login
    ends_at: int | None


class NodePlayer(TokenPlayer):
    """Plays at a node on a virtual clock, on which each step takes a millisecond."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.driven = DrivenNode(
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users=f"User:{ADMIN};User:setup",
            delegation_token_secret_key=SecretStr(secret),
            delegation_token_max_lifetime_ms=MAX_LIFETIME_MS,
            delegation_token_expiry_time_ms=EXPIRY_TIME_MS,
            delegation_token_expiry_check_interval_ms=CHECK_INTERVAL_MS,
        )
        self._logins = Logins(Settings(emulator_users=SecretStr("nemo: nobodys-secret")))
        self._sessions: dict[str, _Session] = {}
        self._asked = 0

    def now(self) -> int:
        return self.driven.now

    async def pass_time(self, length_ms: int) -> None:
        self.driven.elapse(length_ms)

    async def ask(self, who: str, probe: Probe) -> Any:
        await self.pass_time(1)
        session = self._sessions.get(who)
        if session is not None and session.ends_at is not None and self.now() > session.ends_at:
            return None
        principal, by_token = ANONYMOUS if who == NOT_LOGGED_IN else f"User:{who}", False
        if session is not None:
            principal, by_token = session.login.principal, session.login.by_token
        self._asked += 1
        request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
        context = Context(probe.version, "test", "/127.0.0.1", principal, by_token=by_token)
        self.driven.request(("tokens", self._asked), request, context)
        return json.loads(self.driven.replies["tokens", self._asked].to_json(probe.version))

    async def log_in(self, login: TokenLogin) -> tuple[str, int]:
        node = self.driven.node
        stored = StoredCredentials(node.scram_credentials, node.delegation_tokens, self.now)
        authenticator = Authenticator(self._logins, 0, stored=stored)
        outcome, lifetime_ms = await scram_login(partial(self._exchange, authenticator), login)
        if login.stays and authenticator.login is not None:
            lasts = authenticator.login.lifetime_ms
            ends_at = None if lasts is None else self.now() + lasts
            self._sessions[login.stays] = _Session(authenticator.login, ends_at)
        return outcome, lifetime_ms

    async def _exchange(self, authenticator: Authenticator, frame: bytes) -> bytes:
        return authenticator.receive(frame, self.now()).answer[LENGTH_BYTES:]


async def check(player: NodePlayer, script: tuple[TokenStep, ...], recorded: list[Any]) -> None:
    assert len(script) == len(recorded)
    for number, (step, expected) in enumerate(zip(script, recorded, strict=True)):
        (outcome,) = await player.play([step])
        assert outcome == expected, (number, step)


async def test_every_step_has_the_outcome_that_kafka_gave_it() -> None:
    _, *recorded = map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines())
    await check(NodePlayer(""), DISABLED, recorded[: len(DISABLED)])
    await check(NodePlayer(SECRET), steps(), recorded[len(DISABLED) :])
