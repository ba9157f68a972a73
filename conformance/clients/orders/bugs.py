"""The bugs: each with the versions of a client, its settings, and the order that shows it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.clients.conform.judged import ADDRESSES
from conformance.clients.programs import BUILT, HERE, node_packages, python_packages

ORDERS: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PYPI: Final = BUILT / "orders"


@dataclass(frozen=True)
class ClientBug:
    """A bug of a public tracker, with the file of its order, which says where it is described."""

    package: str
    broken: str
    mended: str
    file: str
    settings: Mapping[str, str]
    library: str = ""
    """Name of the library in ``conformance.incident.member``; empty for a package of npm."""

    brokers: int = 1

    def command(self, version: str) -> list[str]:
        """The command that starts a version of the client, which is installed first."""
        settings = ADDRESSES | {"auto.offset.reset": "earliest", "processed": "true"} | dict(self.settings)
        pairs = [f"{name}={value}" for name, value in settings.items()]
        if not self.library:
            program = node_packages(HERE / "node", self.package, version) / f"{self.package}-member.mjs"
            return ["node", str(program), "{TOPIC}", *pairs]
        packages = python_packages(f"{self.package}=={version}", PYPI)
        member = [sys.executable, "-m", "conformance.incident.member", self.library, "{TOPIC}", *pairs]
        return ["env", f"PYTHONPATH={packages}:{ROOT}", *member]


BUGS: Final = (
    ClientBug(
        "confluent-kafka",
        "2.0.2",
        "2.1.0",
        "batches-lose-records.order",
        {"auto.commit.interval.ms": "100", "heartbeat.interval.ms": "200", "batch": "100"},
        library="rdkafka",
    ),
    ClientBug(
        "kafka-python",
        "2.2.8",
        "2.2.9",
        "late-offsets-double-records.order",
        {"auto.commit.interval.ms": "300", "heartbeat.interval.ms": "2000"},
        library="kafka-python",
    ),
    ClientBug(
        "kafkajs",
        "2.2.3",
        "2.2.4",
        "old-generation-ends-consumer.order",
        {
            "client.id": "member",
            "enable.auto.commit": "true",
            "auto.commit.interval.ms": "200",
            "heartbeat.interval.ms": "200",
            "session.timeout.ms": "30000",
            "max.poll.interval.ms": "60000",
            "metadata.max.age.ms": "60000",
        },
    ),
)
