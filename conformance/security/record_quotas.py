"""Records what a broker answers to requests about quotas: ``python -m conformance.security.record_quotas``."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Final

from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_sequences import ADMIN, PRINCIPALS
from conformance.security.quota_script import comparable, quota_script
from conformance.security.record_acls import Login, settings
from conformance.security.throttled_script import NO_TIME, TOPIC, throttled, throttled_script, worked_script
from conformance.security.throttled_script import QUOTAS as SETTING

QUOTAS: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "security" / "quotas.jsonl.gz"
THROTTLED: Final = QUOTAS.with_name("throttled.jsonl")
WORKED: Final = QUOTAS.with_name("worked.jsonl")
_SETTLES_SECONDS: Final = 0.3
"""The broker's own view of quotas follows its controller's."""


async def record(path: Path) -> None:
    """Play the script against a broker, and write what it answered."""
    async with Cluster(await class_path(), 1, settings(), listeners={"SASL": "SASL_PLAINTEXT"}) as cluster:
        port = cluster.listener_ports[1]["SASL"]
        logins = {name: await Login.of(name, port) for name in (ADMIN, PRINCIPALS[0])}
        lines: list[object] = [{"kafka": kafka_version()}]
        for who, probe in quota_script():
            lines.append(comparable(await logins[who].ask(probe)))
            if probe.api == "AlterClientQuotas" and not probe.body["validateOnly"]:
                await asyncio.sleep(_SETTLES_SECONDS)
        for login in logins.values():
            login.close()
    print(f"{len(lines) - 1} answers recorded")
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode(), mtime=0))


async def record_throttled(path: Path) -> None:
    """Record how a broker throttles users with quotas."""
    principals = ";".join(f"User:{name}" for name in (ADMIN, "ANONYMOUS", *PRINCIPALS))
    everyone = {**settings(), "super.users": principals}
    async with Cluster(await class_path(), 1, everyone, listeners={"SASL": "SASL_PLAINTEXT"}) as cluster:
        await ready(cluster.addresses, {TOPIC: 1}, 1, 1)
        port = cluster.listener_ports[1]["SASL"]
        logins = {name: await Login.of(name, port) for name in (ADMIN, *PRINCIPALS)}
        await logins[ADMIN].ask(SETTING)
        await asyncio.sleep(1.0)
        lines: list[object] = [{"kafka": kafka_version()}]
        lines += [throttled(await logins[who].ask(probe)) for who, probe in throttled_script()]
        for login in logins.values():
            login.close()
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


async def record_worked(path: Path) -> None:
    """Record which requests of a user without time a broker throttles."""
    principals = ";".join(f"User:{name}" for name in (ADMIN, "ANONYMOUS", *PRINCIPALS))
    everyone = {**settings(), "super.users": principals}
    async with Cluster(await class_path(), 1, everyone, listeners={"SASL": "SASL_PLAINTEXT"}) as cluster:
        await ready(cluster.addresses, {TOPIC: 1}, 1, 1)
        port = cluster.listener_ports[1]["SASL"]
        admin = await Login.of(ADMIN, port)
        await admin.ask(NO_TIME)
        admin.close()
        await asyncio.sleep(1.0)
        lines: list[object] = [{"kafka": kafka_version()}]
        for probe in worked_script():
            login = await Login.of(PRINCIPALS[0], port)
            answer = await login.ask(probe)
            lines.append([probe.api, probe.version, answer.get("throttleTimeMs")])
            login.close()
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    asyncio.run(record(QUOTAS))
    asyncio.run(record_throttled(THROTTLED))
    asyncio.run(record_worked(WORKED))
