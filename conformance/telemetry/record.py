"""Records answers of a broker with a receiver of metrics, and of a stock one: ``make record-telemetry``.

Without a receiver the broker does not list the two requests of telemetry, and answers them all the same.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_sequences import ADMIN
from conformance.security.record_acls import Login, settings
from conformance.telemetry.script import NO_RIGHTS, TELEMETRY_MAX_BYTES, comparable, telemetry_script
from rejoin.protocol.types import ZERO_UUID

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parent.parent / "tests" / "golden" / "telemetry"
WITH_RECEIVER: Final = "script.jsonl.gz"
STOCK: Final = "stock.jsonl.gz"
TOPIC: Final = "t"
_COMPILE_SECONDS: Final = 60.0


async def with_receiver(jars: str, folder: Path) -> str:
    """A class path with the reporter that makes a broker offer telemetry, compiled into a folder."""
    source = str(HERE / "TelemetryReceiver.java")
    process = await asyncio.create_subprocess_exec("javac", "-cp", jars, "-d", str(folder), source)
    async with asyncio.timeout(_COMPILE_SECONDS):
        if await process.wait() != 0:
            raise ValueError("javac cannot compile the receiver")
    return f"{folder}{os.pathsep}{jars}"


def broker_settings(*, receives: bool = True) -> dict[str, str]:
    """Settings of a broker with ACLs that takes metrics of clients, if it is to."""
    receiver = {"metric.reporters": "TelemetryReceiver"} if receives else {}
    return {**settings(), **receiver, "telemetry.max.bytes": str(TELEMETRY_MAX_BYTES)}


async def record(path: Path, *, receives: bool) -> None:
    """Play the script against a broker, and write what it answered."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        jars = await class_path()
        if receives:
            jars = await with_receiver(jars, Path(folder))
        brokers = Cluster(jars, 1, broker_settings(receives=receives), listeners={"SASL": "SASL_PLAINTEXT"})
        async with brokers as cluster:
            await ready(cluster.addresses, {TOPIC: 1}, 1, 1)
            port = cluster.listener_ports[1]["SASL"]
            logins = {name: await Login.of(name, port) for name in (ADMIN, NO_RIGHTS)}
            lines: list[Any] = [{"kafka": kafka_version()}]
            script = telemetry_script()
            step = next(script)
            try:
                while True:
                    await asyncio.sleep(step.after_ms / 1_000)
                    answer = await logins[step.who].ask(step.probe)
                    lines.append(comparable(answer))
                    if step.probe.body.get("clientInstanceId") == ZERO_UUID and "subscriptionId" in answer:
                        lines[-1] |= {"clientInstanceId": "", "subscriptionId": 0}
                    if step.probe.api in {"AlterConfigs", "IncrementalAlterConfigs"}:
                        await asyncio.sleep(0.1)
                    step = script.send(answer)
            except StopIteration:
                pass
            for login in logins.values():
                login.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {len(lines) - 1} answers recorded")


if __name__ == "__main__":
    for name in sys.argv[1:] or (WITH_RECEIVER, STOCK):
        asyncio.run(record(GOLDEN / name, receives=name != STOCK))
