"""Record the logs of real consumers on a real broker: ``python -m conformance.clients.logs SET ...``.

Each set is some groups of the plan, played together. It gets one log for each process, the broker's log, and a ledger
of what was done, when and to which member, and takes about six minutes. With a seed the lives are drawn instead of
planned. Needs Maven, Java, Go and Node, and the libraries of the dependency group ``conformance``; a group may name
another version of its library, which is then fetched into a temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from conformance.clients.logs.lives import MEMBERS, drawn
from conformance.clients.programs import class_path, go_life, javascript_life, python_packages
from conformance.incident.run import Incident, java_command, python_command, trimmed
from conformance.kafka.broker import class_path as broker_class_path
from conformance.kafka.broker import kafka_version

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[2] / "tests" / "golden" / "client-logs"
DISTRIBUTIONS: Final = {"rdkafka": "confluent-kafka", "kafka-python": "kafka-python", "aiokafka": "aiokafka"}
"""Names of Python's libraries on PyPI."""
PARTITIONS: Final = 6
_PYTHON_LAYOUTS: Final = {
    1: "%(asctime)s %(levelname)s %(name)s: %(message)s",
    2: "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
    3: "%(asctime)s [%(levelname)s] %(name)s: %(message)s",
    4: "%(levelname)s %(asctime)s %(name)s %(message)s",
}
SETTLE_SECONDS: Final = 25
_OF_CLASSIC_GROUPS: Final = ("session.timeout.ms", "heartbeat.interval.ms")
_BEGINS: Final = re.compile(rb"\[?(?:\w+ )?\d{4}[-/]\d\d[-/]\d\d|%\d\||\{|time=|\[sarama\]")
_NUMBERS: Final = re.compile(rb"\d+")
_MOST_REPEATED: Final = 20
_NOISE: Final = re.compile(
    rb"(?<!#)NetworkClient|FetchSessionHandler|AppInfoParser|SubscriptionState|ConsumerUtils|OffsetFetcherUtils|Telemetry"
    rb"|clients\.Metadata|kafka\.(?:net\.(?:manager|transport|connection)|cluster|consumer\.fetcher)|aiokafka\.(?:conn|cluster|consumer\.fetcher)"
    rb"|Unable connect to|Unable to request metadata|kafka\.consumer\.subscription_state: (?:Seek|Reset)"
    rb"|\|(?:DUMP\w*|OFFSET\w*|CGRPOP|ASSIGNDONE|CGRPQUERY|REBOOTSTRAP|FAIL|SRVPEND|GRPASSIGNMENT|PAUSE|REMOVE)\|"
    rb"|COMMIT\|.*(?:Committing offsets|returned: Success)"
    rb"|HEARTBEAT\|.*(?:Heartbeat for group|ConsumerGroupHeartbeat of)"
    rb"| FAIL \["
)
_PACKAGES: Final = re.compile(re.escape(tempfile.gettempdir()).encode() + rb"/client-logs-\w+")
"""Where another version of a library was fetched to."""
_KAFKA_LAYOUT: Final = "[%d] %p %m (%c)%n"
_CONNECT_LAYOUT: Final = "[%d] %p [orders-sink|task-0] %m (%c:%L)%n"


class RecordedClients(Incident):
    """An incident whose members log as their users would have them log."""

    def __init__(self, plan: dict[str, Any], jars: str, folder: Path) -> None:
        super().__init__(plan, jars, folder)
        self._logback = class_path(HERE)
        self._go = {name: go_life(f"{name.split('-')[0]}member")[0] for name in ("franz-go", "sarama")}
        self._node = javascript_life("kafkajs-member")

    def command(self, name: str, group: dict[str, Any], topic: str, settings: dict[str, str]) -> list[str]:
        number, library = int(name.rsplit("-", 1)[1]), group["library"]
        settings = settings | {"enable.auto.commit": "false" if number < MEMBERS else "true"}
        if library == "java":
            return self._java(number, topic, settings, group.get("version"))
        pairs = [f"{key}={value}" for key, value in settings.items()]
        if library in self._go:
            return [self._go[library], topic, *pairs]
        if library == "kafkajs":
            return [*self._node, topic, *pairs]
        if library == "rdkafka":
            renamed = {"metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}
            settings = {renamed.get(key, key): value for key, value in settings.items()}
        # Through Python's logger at its usual level there are no lines for debugging.
        if library != "rdkafka" or (number == 2 and "debug" not in settings):
            settings["logging"] = _PYTHON_LAYOUTS[number]
        command = python_command(library, topic, settings)
        if "version" not in group:
            return command
        packages = python_packages(f"{DISTRIBUTIONS[library]}=={group['version']}", self.folder)
        return ["env", f"PYTHONPATH={packages}:{os.environ.get('PYTHONPATH', '')}", *command]

    def _java(self, number: int, topic: str, settings: dict[str, str], version: str | None) -> list[str]:
        if version is not None or number in {2, 3}:
            layout = HERE / f"logback-{'json' if number == 3 else 'spring'}.xml"
            classes = f"{self.folder}:{self._logback if version is None else class_path(HERE, version)}"
            return java_command(classes, topic, settings, f"-Dlogback.configurationFile={layout}")
        pattern = _KAFKA_LAYOUT if number == 1 else _CONNECT_LAYOUT
        options = (f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}", f"-Dlayout={pattern}")
        return java_command(f"{self.folder}:{self.jars}", topic, settings, *options)


def expanded(plan: dict[str, Any], only: str, seed: int | None = None) -> dict[str, Any]:
    """The plan of an incident: settings and actions of every group written out. With a seed the actions are drawn."""
    groups: dict[str, Any] = {}
    actions: list[dict[str, Any]] = list(plan["all"])
    for nth, name in enumerate(plan["sets"][only]):
        group = plan["groups"][name]
        settings = dict(plan["common"])
        if group.get("protocol") == "consumer":
            # Kafka: in the consumer protocol the broker has these settings.
            settings = {key: value for key, value in settings.items() if key not in _OF_CLASSIC_GROUPS}
            settings["group.protocol"] = "consumer"
        groups[name] = group | {"partitions": PARTITIONS, "members": MEMBERS, "settings": settings | group["settings"]}
        for action in plan["static-life" if group.get("static") else "life"]:
            own = action | {"at": action["at"] + nth * plan["stagger"]}
            if "members" in action:
                own["members"] = [f"{name}-{number}" for number in action["members"]]
            if action["do"] == "grow":
                own["topics"] = [name]
            actions.append(own)
    until = plan["until"]
    if seed is not None:
        actions = drawn(seed, {name: bool(group.get("static")) for name, group in groups.items()})
        until = max(action["at"] for action in actions) + SETTLE_SECONDS
    return {"groups": groups, "actions": sorted(actions, key=lambda each: each["at"]), "until": until}


def without_noise(log: bytes) -> bytes:
    """A log without the many lines about connections, records and offsets that went well.

    Of lines that differ in nothing but their numbers and follow each other, ``_MOST_REPEATED`` are kept: aiokafka 0.10
    writes thousands in a second while it has no broker.
    """
    kept: list[bytes] = []
    drops = False
    last, repeated = b"", 0
    for line in log.splitlines(keepends=True):
        if _BEGINS.match(line):
            shape = _NUMBERS.sub(b"0", line)
            last, repeated = shape, repeated + 1 if shape == last else 0
            drops = repeated >= _MOST_REPEATED or _NOISE.search(line) is not None
        if not drops:
            kept.append(line)
    text = _PACKAGES.sub(b"/packages", b"".join(kept))
    return text.replace(sys.prefix.encode(), b"/venv").replace(str(HERE.parents[2]).encode(), b"/app")


def record(plan: dict[str, Any], folder: Path) -> None:
    """Play a plan, and keep what came of it."""
    jars = asyncio.run(broker_class_path())
    with tempfile.TemporaryDirectory(prefix="client-logs-") as work:
        incident = RecordedClients(plan, jars, Path(work))
        logs = asyncio.run(incident.run())
        for group in plan["groups"]:
            (folder / group).mkdir(parents=True, exist_ok=True)
        for out in Path(work).glob("*.out"):
            log = folder / out.stem.rsplit("-", 1)[0] / f"{out.stem}.log.gz"
            log.write_bytes(gzip.compress(without_noise(out.read_bytes()), mtime=0))
    (folder / "server.log.gz").write_bytes(gzip.compress(trimmed(logs["server.log"]).encode(), mtime=0))
    ledger = {"kafka": kafka_version(), "groups": plan["groups"], "done": incident.ledger}
    (folder / "ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")


def main() -> None:
    plan = yaml.safe_load((HERE / "plan.yaml").read_text())
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.logs", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(plan['sets'])}; all without")
    parser.add_argument("--seed", type=int, help="draw the lives, and do not take those of the plan")
    parser.add_argument("--out", type=Path, default=GOLDEN, help="where each set gets a folder")
    arguments = parser.parse_args()
    for name in arguments.sets or plan["sets"]:
        folder = name if arguments.seed is None else f"drawn-{name}"
        record(expanded(plan, name, arguments.seed), arguments.out / folder)


if __name__ == "__main__":
    main()
