"""Records what a broker does with too many connections: ``python -m conformance.connections.record``.

One line for each scenario in ``tests/golden/connections.jsonl``.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Final

from conformance.connections.script import SCENARIOS, Ports, Scenario
from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.record import ready
from rejoin.conform.player.connection import ClientConnections

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "connections.jsonl"
_SETTLES_SECONDS: Final = 1.0
"""The broker's view of quotas follows its controller's."""


async def _set_rates(cluster: Cluster, scenario: Scenario) -> None:
    connections = ClientConnections(cluster.addresses, time.monotonic)
    entries = [
        {
            "entity": [{"entityType": "ip", "entityName": address}],
            "ops": [{"key": "connection_creation_rate", "value": rate, "remove": False}],
        }
        for address, rate in scenario.ip_rates.items()
    ]
    await connections.ask("cluster", 1, "AlterClientQuotas", 1, {"entries": entries, "validateOnly": False})
    connections.close()
    await asyncio.sleep(_SETTLES_SECONDS)


async def record(path: Path) -> None:
    """Play every scenario against a broker of its own, and write what it did."""
    jars = await class_path()
    lines: list[object] = [{"kafka": kafka_version()}]
    for name, scenario in SCENARIOS.items():
        async with Cluster(jars, 1, scenario.settings, listeners={"OTHER": "PLAINTEXT"}) as cluster:
            await ready(cluster.addresses, {}, 1, 1)
            if scenario.ip_rates:
                await _set_rates(cluster, scenario)
            seen = await scenario.play(Ports(cluster.ports[1], cluster.listener_ports[1]["OTHER"]))
        lines.append({"scenario": name, "seen": seen})
        print(name, seen, flush=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
