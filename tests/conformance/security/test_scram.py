"""Changes of SCRAM's users have the answers, and the logins after them the outcomes, that Apache Kafka gave them."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

from pydantic import SecretStr

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN
from conformance.security.record_scram import GOLDEN, NAMES, Ask, play
from conformance.security.scram_steps import FIRST_USERS, ScramLogin, steps
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.registry import BY_NAME

OWN = {"AlterUserScramCredentials", "DescribeUserScramCredentials"}
SETTINGS = Settings(
    listeners="SASL://127.0.0.1:0",
    listener_security_protocol_map="SASL:SASL_PLAINTEXT,HTTP:PLAINTEXT",
    authorizer_class_name=STANDARD_AUTHORIZER,
    super_users=f"User:{ADMIN}",
    emulator_users=SecretStr(json.dumps(FIRST_USERS)),
    emulator_failed_logins_per_minute=1_000,
    connection_failed_authentication_delay_ms=0,
)
"""The principals who ask are not in the file: each user there has keys for SCRAM."""


def asking(app: App, name: str) -> Ask:
    async def ask(probe: Probe) -> Any:
        request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
        async with asyncio.timeout(5):
            reply = await app.submit(request, Context(probe.version, "test", "/127.0.0.1", f"User:{name}")).answer()
        assert reply is not None
        return json.loads(reply.to_json(probe.version))

    return ask


async def test_every_step_has_the_outcome_that_kafka_gave_it() -> None:
    _, *recorded = map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines())
    async with App(Options(settings=SETTINGS, port=0)) as app:
        played = await play({name: asking(app, name) for name in NAMES}, app.bound_ports["SASL"])
    for number, (step, ours, theirs) in enumerate(zip(steps(), played, recorded, strict=True)):
        if isinstance(step.what, ScramLogin) or step.what.api in OWN:
            assert ours == theirs, (number, step)
