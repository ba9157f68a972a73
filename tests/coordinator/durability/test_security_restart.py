"""ACLs, quotas, users of SCRAM and delegation tokens outlive their node, on disk and in PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr

from conformance.security.acl_probes import Probe, every_acl
from conformance.security.acl_sequences import create, creation, delete
from conformance.security.scram_steps import alter, upsertion
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.registry import BY_NAME

SETTINGS: Final = Settings(
    authorizer_class_name=STANDARD_AUTHORIZER,
    super_users="User:admin",
    delegation_token_secret_key=SecretStr("secret"),
)
TOKEN: Final = {"renewers": [{"principalType": "User", "principalName": "bob"}], "maxLifetimeMs": -1}
QUOTA: Final = {
    "entity": [{"entityType": "user", "entityName": "alice"}],
    "ops": [{"key": "producer_byte_rate", "value": 1_000.0, "remove": False}],
}
CHANGES: Final = (
    create(creation(), creation(resourceName="gone")),
    delete(every_acl(resourceNameFilter="gone")),
    Probe("AlterClientQuotas", 1, {"entries": [QUOTA], "validateOnly": False}),
    alter((), (upsertion("carol"),)),
    Probe("CreateDelegationToken", 2, TOKEN),
)
LOOKS: Final = (
    Probe("DescribeAcls", 3, every_acl()),
    Probe("DescribeClientQuotas", 1, {"components": [], "strict": False}),
    Probe("DescribeUserScramCredentials", 0, {"users": None}),
    Probe("DescribeDelegationToken", 3, {"owners": None}),
)


async def ask(app: App, probe: Probe) -> Any:
    request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
    reply = await app.runtime.submit(request, Context(probe.version, "test", principal="User:admin")).answer()
    assert reply is not None
    return json.loads(reply.to_json(probe.version))


@pytest.mark.parametrize("kind", ["data", "store"])
async def test_what_was_changed_is_there_after_a_restart(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where: dict[str, Any] = {"data": tmp_path / "data"}
    if kind == "store":
        where = {"store": request.getfixturevalue("postgres")}
    options = Options(settings=SETTINGS, port=0, **where)
    async with App(options) as app:
        for probe in CHANGES:
            await ask(app, probe)
        before = [await ask(app, probe) for probe in LOOKS]
    async with App(options) as app:
        assert [await ask(app, probe) for probe in LOOKS] == before
    acls, quotas, users, tokens = before
    assert [each["resourceName"] for each in acls["resources"]] == ["pay"]
    assert [each["values"] for each in quotas["entries"]] == [[{"key": "producer_byte_rate", "value": 1_000.0}]]
    assert [each["user"] for each in users["results"]] == ["carol"]
    assert [each["principalName"] for each in tokens["tokens"]] == ["admin"]
