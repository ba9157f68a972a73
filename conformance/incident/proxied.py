"""Plays a plan with ``rejoin proxy`` in front of the broker: ``python -m conformance.incident.proxied FOLDER``.

``--plan FILE`` chooses the plan. One run leaves three kinds of evidence in FOLDER, beside the ledger of what was done:
the proxy's journal, the broker's logs, and the logs of the clients. ``conformance.incident.evidence`` compares what is
found in each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from conformance.incident.run import HERE, Incident, java_command, python_command
from conformance.kafka.broker import class_path, kafka_version
from conformance.kafka.proxy_process import ProxyProcess

JOURNAL: Final = "journal"
BROKER_LOGS: Final = "broker-logs"
CLIENT_LOGS: Final = "client-logs"
_PRODUCES_UNTIL: Final = 10
"""Seconds before the end of a plan at which the last record is produced."""
_JAVA_LOGGING: Final = HERE.parent / "clients" / "logs" / "log4j2.properties"
_PYTHON_LAYOUT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class ProxiedIncident(Incident):
    """An incident whose clients know the proxy's address alone, and log as they do by default."""

    def command(self, _name: str, group: dict[str, Any], topic: str, settings: dict[str, str]) -> list[str]:
        if group["library"] == "java":
            options = (f"-Dlog4j2.configurationFile={_JAVA_LOGGING}", "-Dlayout=[%d] %p %m (%c)%n")
            return java_command(f"{self.folder}:{self.jars}", topic, settings, *options)
        if group["library"] != "rdkafka":
            settings = settings | {"logging": _PYTHON_LAYOUT}
        return python_command(group["library"], topic, settings)

    @asynccontextmanager
    async def clients_address(self, broker: str) -> AsyncIterator[str]:
        """The address of a proxy, which runs until the end."""
        async with ProxyProcess(broker, self.folder) as proxy:
            yield proxy.address


def keep(work: Path, logs: dict[str, str], folder: Path) -> None:
    """Move the evidence of a run into its folder."""
    for name in (JOURNAL, BROKER_LOGS, CLIENT_LOGS):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(work / JOURNAL, folder / JOURNAL)
    shutil.copy(work / "proxy.log", folder / "proxy.log")
    (folder / BROKER_LOGS).mkdir(parents=True)
    for name, log in logs.items():
        (folder / BROKER_LOGS / name).write_text(log)
    for out in work.glob("*.out"):
        group = folder / CLIENT_LOGS / out.stem.rsplit("-", 1)[0]
        group.mkdir(parents=True, exist_ok=True)
        shutil.copy(out, group / f"{out.stem}.log")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.incident.proxied", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plan", type=Path, default=HERE / "plans" / "proxied.yaml")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    plan = yaml.safe_load(arguments.plan.read_text())
    plan["actions"].append({"at": 0, "do": "produce", "for": plan["until"] - _PRODUCES_UNTIL})
    jars = asyncio.run(class_path())
    with tempfile.TemporaryDirectory(prefix="incident-") as work:
        incident = ProxiedIncident(plan, jars, Path(work))
        logs = asyncio.run(incident.run())
        keep(Path(work), logs, folder)
    ledger = {"kafka": kafka_version(), "groups": plan["groups"], "done": incident.ledger}
    (folder / "ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")


if __name__ == "__main__":
    main()
