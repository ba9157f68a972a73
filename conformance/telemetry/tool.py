"""Kafka's ``kafka-client-metrics.sh`` prints the same of Rejoin: ``python -m conformance.telemetry.tool``."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from conformance.clients.programs import HERE as CLIENTS
from conformance.clients.programs import class_path as class_path_of
from conformance.kafka.broker import HOST, JAVA, Cluster, class_path
from rejoin.coordinator.testing import running

TOOL: Final = "org.apache.kafka.tools.ClientMetricsCommand"
PATIENCE_SECONDS: Final = 60.0
_NAMED: Final = ("--name", "slow")
STEPS: Final = (
    ("--list",),
    ("--describe",),
    ("--alter", *_NAMED, "--interval", "60000", "--metrics", "org.apache.kafka.consumer.,org.apache.kafka.producer."),
    ("--describe", *_NAMED),
    ("--alter", *_NAMED, "--match", "client_id=app.*,client_software_name=java"),
    ("--alter", "--name", "other", "--metrics", "*"),
    ("--describe",),
    ("--list",),
    ("--alter", *_NAMED, "--interval", "5"),
    ("--alter", *_NAMED, "--match", "client=x"),
    ("--delete", *_NAMED),
    ("--delete", *_NAMED),
    ("--describe", *_NAMED),
    ("--list",),
)


async def printed(jars: str, address: str, *arguments: str) -> list[str]:
    """The exit code and the output of the tool."""
    command = (*JAVA, "-cp", jars, TOOL, "--bootstrap-server", address, *arguments)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, _ = await process.communicate()
    # Brokers say what is wrong in words of their own.
    kept = [line.partition(" command : ")[0] for line in out.decode().splitlines()]
    return [f"exit {process.returncode}", *sorted(kept)]


async def main() -> int:
    """How many steps differ."""
    jars, tools = await class_path(), class_path_of(CLIENTS / "tools")
    differ = 0
    async with Cluster(jars, 1, {"offsets.topic.num.partitions": "1"}) as cluster, running() as coordinator:
        addresses = (f"{HOST}:{cluster.ports[1]}", coordinator.bootstrap_servers)
        for step in STEPS:
            kafka, ours = await asyncio.gather(*(printed(tools, address, *step) for address in addresses))
            differ += kafka != ours
            print(f"{' '.join(step)}: {'as Kafka' if kafka == ours else 'DIFFERS'}")
            for each in (kafka, ours) if kafka != ours else (kafka,):
                print("".join(f"    {line[:110]}\n" for line in each), end="")
    return differ


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
