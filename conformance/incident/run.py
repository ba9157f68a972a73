"""Plays a plan with a real broker and real consumers: ``python -m conformance.incident.run FOLDER --plan FILE``.

FOLDER gets the broker's log, its requests about groups, and a ledger of what was done, when and to whom. It takes about
eleven minutes. Needs Maven and Java (``javac``), and the libraries of the dependency group ``conformance``.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from conformance.kafka.broker import JAVA, Cluster, class_path, kafka_version
from conformance.record import ready

HERE: Final = Path(__file__).parent
BROKER: Final = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "2000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "2000",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
}
SETTLE_SECONDS: Final = 25
_ROUTINE: Final = re.compile(
    r'"requestApiKeyName":"(HEARTBEAT|OFFSET_COMMIT)".*"errorCode":0'
    r'|"requestApiKeyName":"CONSUMER_GROUP_HEARTBEAT".*"topicPartitions":null.*"assignment":null'
)
_ABOUT: Final = re.compile(
    r"GroupCoordinator|GroupMetadata|new partition|log for partition|Creating\.\.\.|BrokerServer id"
)
_CONNECTION: Final = re.compile(r'"connection":"([^"]*)"')
ONE_HEARTBEAT_SECONDS: Final = 8
_GROW: Final = """
import sys
from confluent_kafka.admin import AdminClient, NewPartitions
_, address, topic, partitions = sys.argv
admin = AdminClient({"bootstrap.servers": address})
new = [NewPartitions(topic, int(partitions))]
for done in admin.create_partitions(new, operation_timeout=60, request_timeout=60).values():
    done.result()
"""
_PRODUCE: Final = """
import sys, time
from confluent_kafka import Producer
_, address, topics, seconds = sys.argv
producer = Producer({"bootstrap.servers": address, "log_level": 2, "topic.metadata.refresh.interval.ms": 5000})
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    for topic in topics.split(","):
        for number in range(12):
            producer.produce(topic, b"record", key=str(number))
    producer.poll(0)
    time.sleep(0.4)
producer.flush(10)
"""


def java_command(classes: str, topic: str, settings: dict[str, str], *options: str) -> list[str]:
    """A consumer of Java, with settings by Kafka's names."""
    memory = [*(each for each in JAVA if not each.startswith("-Xm")), "-Xmx96m"]
    return [*memory, *options, "-cp", classes, "Member", topic, *_pairs(settings)]


def python_command(library: str, topic: str, settings: dict[str, str]) -> list[str]:
    """A consumer of one of Python's libraries."""
    return [sys.executable, "-m", "conformance.incident.member", library, topic, *_pairs(settings)]


def _pairs(settings: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


class IncidentMember:
    """A consumer's process, which may be started more than once."""

    def __init__(self, incident: Incident, name: str, group: dict[str, Any], group_id: str) -> None:
        self.name = name
        self.process: asyncio.subprocess.Process | None = None
        self._incident, self._group, self._group_id = incident, group, group_id

    def _command(self) -> list[str]:
        settings = {
            "bootstrap.servers": self._incident.address,
            "group.id": self._group_id,
            "auto.offset.reset": "earliest",
        } | {name: str(value) for name, value in self._group["settings"].items()}
        if not self._group.get("nameless"):
            settings["client.id"] = self.name
        if self._group.get("static"):
            settings["group.instance.id"] = self.name
        return self._incident.command(self.name, self._group, self._group_id, settings)

    async def start(self) -> None:
        with (self._incident.folder / f"{self.name}.out").open("ab") as out:
            self.process = await asyncio.create_subprocess_exec(
                *self._command(), stdin=asyncio.subprocess.PIPE, stdout=out, stderr=out, cwd=HERE.parent.parent
            )

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(how)
        try:
            async with asyncio.timeout(15):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    async def pause(self, seconds: float) -> None:
        assert self.process is not None, "only a process that runs is paused"
        self.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def send(self, line: str) -> None:
        """Give its handler something to do, see :mod:`conformance.incident.member`."""
        assert self.process is not None, "only a process that runs reads its input"
        assert self.process.stdin is not None, "its input is a pipe"
        self.process.stdin.write(f"{line}\n".encode())


class Incident:
    """The broker, the groups and the ledger."""

    def __init__(self, plan: dict[str, Any], jars: str, folder: Path) -> None:
        self.plan, self.jars, self.folder = plan, jars, folder
        self.members: dict[str, IncidentMember] = {}
        self.ledger: list[dict[str, Any]] = []
        self.address = ""
        self._cluster: Cluster | None = None
        self._began = 0.0

    def command(self, _name: str, group: dict[str, Any], topic: str, settings: dict[str, str]) -> list[str]:
        """How a member's process is started."""
        if group["library"] == "java":
            return java_command(f"{self.folder}:{self.jars}", topic, settings)
        return python_command(group["library"], topic, settings)

    @asynccontextmanager
    async def clients_address(self, broker: str) -> AsyncIterator[str]:
        """The address that clients are given: the broker's own."""
        yield broker

    async def run(self) -> dict[str, str]:
        """Do all of it; returns the logs."""
        await _checked("javac", "-cp", self.jars, "-d", str(self.folder), str(HERE / "Member.java"))
        async with (
            Cluster(self.jars, 1, BROKER, HERE / "log4j2.properties") as cluster,
            self.clients_address(":".join(map(str, cluster.addresses[1]))) as address,
        ):
            self._cluster = cluster
            self.address = address
            topics = {name: int(group["partitions"]) for name, group in self.plan["groups"].items()}
            topics |= self.plan.get("topics", {})
            await ready(cluster.addresses, topics, 1, 1)
            try:
                await self._start_groups()
                await asyncio.sleep(SETTLE_SECONDS)
                self._began = time.monotonic()
                await asyncio.gather(
                    *(self._do(action) for action in self.plan["actions"]), self._at(self.plan["until"])
                )
                logs = {"server.log": cluster.server_log(1), "kafka-request.log": cluster.request_log(1)}
            finally:
                await asyncio.gather(*(member.stop(signal.SIGKILL) for member in self.members.values()))
        return logs

    async def _start_groups(self) -> None:
        for name, group in self.plan["groups"].items():
            for number in range(1, int(group["members"]) + 1):
                await self._member(f"{name}-{number}").start()

    def _member(self, name: str) -> IncidentMember:
        group_id = name.rsplit("-", 1)[0]
        if name not in self.members:
            self.members[name] = IncidentMember(self, name, self.plan["groups"][group_id], group_id)
        return self.members[name]

    async def _at(self, second: float) -> None:
        await asyncio.sleep(max(0.0, self._began + second - time.monotonic()))

    async def _do(self, action: dict[str, Any]) -> None:
        await self._at(action["at"])
        members: list[str] = action.get("members", [])
        entry = {"from_ms": round(time.time() * 1000), **action}
        self.ledger.append(entry)
        print(f"{time.monotonic() - self._began:6.1f}", action["do"], *members, flush=True)
        await getattr(self, f"_do_{action['do'].replace('-', '_')}")(action, [self._member(each) for each in members])
        entry["to_ms"] = round(time.time() * 1000)

    async def _do_rolling_restart(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        for nth, member in enumerate(members):
            await self._at(action["at"] + nth * action["every"])
            await member.stop(signal.Signals[action.get("by", "SIGTERM")])
            await asyncio.sleep(action["away"])
            await member.start()

    async def _do_crash_loop(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        for member in members:
            for nth in range(action["times"]):
                await self._at(action["at"] + nth * action["every"])
                await member.stop(signal.SIGKILL)
                await asyncio.sleep(action["away"])
                await member.start()

    async def _do_kill(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        await asyncio.gather(*(member.stop(signal.SIGKILL) for member in members))

    async def _do_start(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        await asyncio.gather(*(member.start() for member in members))

    async def _do_stop(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        await asyncio.gather(*(member.stop() for member in members))

    async def _do_pause(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        await asyncio.gather(*(member.pause(action["for"]) for member in members))

    async def _do_slow_handler(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        for member in members:
            member.send(f"sleep {action['for']}")
        await asyncio.sleep(action["for"])

    async def _do_subscribe(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        for member in members:
            member.send(f"subscribe {','.join(action['topics'])}")

    async def _do_duplicate(self, action: dict[str, Any], members: Iterable[IncidentMember]) -> None:
        """Another process with the same instance id; the first one is fenced."""
        for member in members:
            other = self.members[f"{member.name} again"] = IncidentMember(
                self, member.name, self.plan["groups"][member.name.rsplit("-", 1)[0]], member.name.rsplit("-", 1)[0]
            )
            await other.start()

    async def _do_broker_restart(self, action: dict[str, Any], _: Iterable[IncidentMember]) -> None:
        assert self._cluster is not None, "the broker runs"
        await self._cluster.stop(1, signal.Signals[action.get("by", "SIGTERM")])
        await asyncio.sleep(action["away"])
        await self._cluster.start(1)

    async def _do_produce(self, action: dict[str, Any], _: Iterable[IncidentMember]) -> None:
        """Records for all topics, so that there is something to commit."""
        topics = ",".join(self.plan["groups"])
        await _checked(sys.executable, "-c", _PRODUCE, self.address, topics, str(action["for"]))

    async def _do_grow(self, action: dict[str, Any], _: Iterable[IncidentMember]) -> None:
        for topic in action["topics"]:
            await _checked(sys.executable, "-c", _GROW, self.address, topic, str(action["partitions"]))


async def _checked(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise SystemExit(f"{command[0]} ended with {process.returncode}")


def trimmed(log: str) -> str:
    """A log without what no reader of group histories looks at: other components, most heartbeats that went well."""
    last: dict[str, float] = {}
    return "".join(f"{line}\n" for line in log.splitlines() if line.startswith("[") and _is_kept(line, last))


def _is_kept(line: str, last: dict[str, float]) -> bool:
    """Whether a line stays. ``last``: connections to when a heartbeat of theirs was last kept."""
    if "Completed request:" not in line:
        return _ABOUT.search(line) is not None
    if not _ROUTINE.search(line):
        return True
    connection = _CONNECTION.search(line)
    at = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()
    name = "" if connection is None else connection[1]
    if at - last.get(name, 0.0) < ONE_HEARTBEAT_SECONDS:
        return False
    last[name] = at
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.incident.run", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plan", type=Path, default=HERE / "plans" / "one.yaml")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    plan = yaml.safe_load(arguments.plan.read_text())
    jars = asyncio.run(class_path())
    with tempfile.TemporaryDirectory(prefix="incident-") as work:
        incident = Incident(plan, jars, Path(work))
        try:
            logs = asyncio.run(incident.run())
        finally:
            for out in Path(work).glob("*.out"):
                (folder / out.name).write_bytes(out.read_bytes())
    for name, log in logs.items():
        (folder / f"{name}.all").write_text(log)
        (folder / f"{name}.gz").write_bytes(gzip.compress(trimmed(log).encode(), mtime=0))
    ledger = {"kafka": kafka_version(), "groups": plan["groups"], "done": incident.ledger}
    (folder / "ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")


if __name__ == "__main__":
    main()
