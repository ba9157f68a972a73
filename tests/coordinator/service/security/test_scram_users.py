"""Users that clients make: they log in at every broker at once, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr

from conformance.security.acl_probes import Probe
from conformance.security.record_scram import scram_login
from conformance.security.scram_steps import ScramLogin, alter, deletion, upsertion
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, Options
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest

SCRAM: Final = "SCRAM-SHA-256"
REFUSED: Final = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {SCRAM}"
CAROL: Final = ScramLogin(SCRAM, "carol", "carol-new")
ALICE: Final = ScramLogin(SCRAM, "alice", "alice-secret")
CHANGE: Final = alter((deletion("alice"),), (upsertion("carol"),))


def settings(**more: Any) -> Settings:
    given: dict[str, Any] = {
        "listeners": "SASL://127.0.0.1:0",
        "listener_security_protocol_map": "SASL:SASL_PLAINTEXT,HTTP:PLAINTEXT",
        "connection_failed_authentication_delay_ms": 0,
        "sasl_enabled_mechanisms": SCRAM,
    }
    return Settings(**{**given, **more})


def with_alice() -> Settings:
    return settings(emulator_users=SecretStr("alice: alice-secret"))


def request_of(probe: Probe) -> Request:
    return AlterUserScramCredentialsRequest.parse(json.dumps(probe.body), 0)


async def change(app: App) -> None:
    request = request_of(CHANGE)
    answer: Any = await app.submit(request, Context(0, by_operator=True)).answer()
    assert [each.error_code for each in answer.results] == [ErrorCode.NONE] * 2


async def logins(app: App) -> list[str]:
    return [await scram_login(next(iter(app.bound_ports.values())), each) for each in (ALICE, CAROL)]


async def test_a_change_is_known_at_every_broker_at_once() -> None:
    given = Settings(
        sasl_enabled_mechanisms=SCRAM,
        connection_failed_authentication_delay_ms=0,
        emulator_users=SecretStr("alice: alice-secret"),
    )
    async with BrokerCluster(Options(settings=given, port=0, kafka_port=0), 3) as cluster:
        assert [await logins(app) for app in cluster.apps] == [["ok", REFUSED]] * 3
        await change(cluster.apps[0])
        assert [await logins(app) for app in cluster.apps] == [[REFUSED, "ok"]] * 3
        await cluster.apps[1].kill_broker()
        await cluster.apps[1].start_broker()
        assert await logins(cluster.apps[1]) == [REFUSED, "ok"]


@pytest.mark.parametrize("control", [None, ControlOptions()])
async def test_a_change_is_known_after_a_restart(tmp_path: Path, control: ControlOptions | None) -> None:
    options = Options(settings=with_alice(), port=0, data=tmp_path / "data", control=control)
    async with App(options) as app:
        await change(app)
        assert await logins(app) == [REFUSED, "ok"]
    async with App(options) as app:
        assert await logins(app) == [REFUSED, "ok"]


async def test_without_a_file_the_first_user_may_be_made_by_a_client() -> None:
    async with App(Options(settings=settings(), port=0)) as app:
        request = request_of(alter((), (upsertion("carol"),)))
        await app.submit(request, Context(0)).answer()
        assert await logins(app) == [REFUSED, "ok"]


def test_plain_goes_by_the_file_alone() -> None:
    with pytest.raises(ValueError, match="expected users"):
        ListenerSecurity(settings(sasl_enabled_mechanisms="PLAIN")).logins()
