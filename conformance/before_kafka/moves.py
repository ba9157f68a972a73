"""Three Kafka brokers whose leaders and coordinators move under clients: ``python -m conformance.before_kafka.moves``.

Clients use ``rejoin proxy``; where a step fails, all is done again with clients on the brokers themselves. Producers
keep what was acknowledged, consumers what they read; the ledger of both is judged at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from conformance.before_kafka.ledger import TOPIC, TRANSFORMED, committed_to_the_end, values_of
from conformance.before_kafka.results import ProxiedResult, keep
from conformance.before_kafka.running_clients import ClientProcess
from conformance.before_kafka.stand import HERE, SETTINGS, ProxiedKafka
from conformance.clients.programs import HERE as CLIENTS
from conformance.clients.programs import JAVA, run
from conformance.clients.programs import class_path as programs_class_path
from conformance.clients.tools import TOOLS
from conformance.incident.run import java_command, python_command
from conformance.kafka.broker import BrokerFailed, class_path, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.record import ready

NAME: Final = "three brokers"
PARTITIONS: Final = 6
BROKERS: Final = 3
EVERY_MS: Final = 40
MORE: Final = 25
"""Records that each producer is to be acknowledged after each move."""
SECONDS: Final = 150.0
"""How long clients have after a move; the machine may be busy."""
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_BROKER: Final = {
    "min.insync.replicas": "2",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # Patience, as eleven processes start on one machine.
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "8000",
    "broker.session.timeout.ms": "12000",
}
Step = Callable[[], Awaitable[None]]


class MovingPlay:
    """The clients on one cluster, and what is done to that."""

    def __init__(self, kafka: ProxiedKafka, servers: str, jars: str) -> None:
        self._kafka, self._servers, self._jars = kafka, servers, jars
        self._actions = KafkaActions(kafka.cluster)
        self.clients: list[ClientProcess] = []
        self.problems: dict[str, str] = {}
        self.seen_ports: set[int] = set()
        self.counts: dict[str, int] = {}

    # --- clients

    async def start(self) -> None:
        """Make the topics and start all clients."""
        topics = {TOPIC: PARTITIONS, TRANSFORMED: PARTITIONS}
        await ready(self._kafka.cluster.addresses, topics, BROKERS, BROKERS)
        folder = self._kafka.folder
        sources = (
            HERE / "Sender.java",
            CLIENTS / "conform" / "Transformer.java",
            HERE.parent / "incident" / "Member.java",
        )
        await asyncio.to_thread(run, "javac", "-cp", self._jars, "-d", str(folder), *map(str, sources))
        classes = f"{folder}:{self._jars}"
        base = {"bootstrap.servers": self._servers, "auto.offset.reset": "earliest", "processed": "true"}
        base |= {"metadata.max.age.ms": "30000"}
        classic = base | {"group.id": "java-classic", "enable.auto.commit": "false"}
        consumer = base | {"group.id": "java-consumer", "enable.auto.commit": "false", "group.protocol": "consumer"}
        native = {**base, "group.id": "rdkafka", "auto.commit.interval.ms": "1000", "group.protocol": "consumer"}
        given = [TOPIC, str(PARTITIONS)]
        sending = [f"bootstrap.servers={self._servers}", "acks=all", "enable.idempotence=true"]
        memory = [*(each for each in JAVA if not each.startswith("-Xm")), "-Xmx96m"]
        transforming = {**base, "group.id": "transformer", "transactional.id": "transformer"}
        os.environ.update({"TOPIC": TOPIC, "OUTPUT_TOPIC": TRANSFORMED})
        pairs = [f"{name}={value}" for name, value in transforming.items()]
        for name, group, command in (
            ("java-classic-1", "java-classic", java_command(classes, TOPIC, classic)),
            ("java-classic-2", "java-classic", java_command(classes, TOPIC, classic)),
            ("java-consumer-1", "java-consumer", java_command(classes, TOPIC, consumer)),
            ("rdkafka-1", "rdkafka", python_command("rdkafka", TOPIC, native)),
            ("rdkafka-2", "rdkafka", python_command("rdkafka", TOPIC, native)),
            ("transformer", "", [*memory, "-cp", classes, "Transformer", *pairs]),
            ("java-sender", "", [*memory, "-cp", classes, "Sender", *given, "java", str(EVERY_MS), *sending]),
            (
                "rdkafka-sender",
                "",
                [sys.executable, "-m", "conformance.before_kafka.sender", *given, "rdkafka", str(EVERY_MS), *sending],
            ),
        ):
            client = ClientProcess(name, group, command, folder)
            await client.start()
            self.clients.append(client)

    @property
    def _senders(self) -> list[ClientProcess]:
        return [each for each in self.clients if each.name.endswith("-sender")]

    def _read(self, group: str) -> Counter[tuple[int, int]]:
        return sum((each.read() for each in self.clients if each.group == group), Counter())

    @property
    def _groups(self) -> list[str]:
        return sorted({each.group for each in self.clients if each.group})

    async def goes_on(self) -> None:
        """Wait until each producer was acknowledged more, and each group has read all that was."""
        wanted = {each.name: len(each.acked()) + MORE for each in self._senders}
        await self._until(
            "producers go on",
            lambda: [each.name for each in self._senders if len(each.acked()) < wanted[each.name]],
        )
        acked = {(record.partition, record.offset) for each in self._senders for record in each.acked()}
        await self._until("groups read on", lambda: [each for each in self._groups if acked - self._read(each).keys()])

    async def _until(self, what: str, missing: Callable[[], list[str]]) -> None:
        end = time.monotonic() + SECONDS
        while names := missing():
            self._look()
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not {', '.join(names)} within {SECONDS:g} s")
            await asyncio.sleep(0.3)
        self._look()

    def _look(self) -> None:
        """Note the ports of connections; no client may have ended."""
        for each in self.clients:
            self.seen_ports |= each.ports()
            if each.has_ended:
                raise RuntimeError(f"{each.name} ended: {' '.join(each.said().split())}")

    # --- what is done

    async def step(self, name: str, *work: Step) -> None:
        """Do something, and keep the problem that there was."""
        began = time.monotonic()
        try:
            for each in work:
                await each()
            self.problems[name] = ""
        except (RuntimeError, TimeoutError, AssertionError, OSError, BrokerFailed) as problem:
            self.problems[name] = str(problem) or type(problem).__name__
        print(f"  {name}: {self.problems[name] or 'passed'} ({time.monotonic() - began:.0f} s)", flush=True)

    async def _tool(self, name: str, *given: str) -> str:
        jars = await asyncio.to_thread(programs_class_path, CLIENTS / "tools")
        command = [*JAVA, "-cp", jars, f"{TOOLS}.{name}", "--bootstrap-server", self._servers, *given]
        return await asyncio.to_thread(run, *command)

    async def move_leaders(self) -> None:
        """Other replicas become the first ones, and are elected, by Kafka's tools."""
        rotated = [[2, 3, 1], [3, 1, 2], [1, 2, 3]]
        plan = [{"topic": TOPIC, "partition": number, "replicas": rotated[number % 3]} for number in range(PARTITIONS)]
        file = self._kafka.folder / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": plan}))
        before = await self._leaders(TOPIC)
        await self._tool("reassign.ReassignPartitionsCommand", "--execute", "--reassignment-json-file", str(file))
        await self._tool("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
        after = await self._leaders(TOPIC)
        expected = [one[0] for one in rotated] * (PARTITIONS // 3)
        assert after == expected, f"leaders were {before} and are {after}, expected {expected}"

    async def _leaders(self, topic: str) -> list[int]:
        return [each["leaderId"] for each in (await self._kafka.partitions(topic))[topic]]

    async def move_coordinators(self) -> None:
        """Every partition of offsets and of transactions is led by another broker."""
        for topic in (OFFSETS, TRANSACTIONS):
            for partition, leader in enumerate(await self._leaders(topic)):
                await self._actions.move(partition, leader % BROKERS + 1, lambda: None, topic)

    async def _away(self, number: int, how: signal.Signals) -> None:
        await self._kafka.cluster.stop(number, how)
        await self.goes_on()
        await self._kafka.cluster.start(number)
        await self._in_sync()

    async def _in_sync(self) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                topics = await self._kafka.partitions()
                if all(len(each["isrNodes"]) == BROKERS for partitions in topics.values() for each in partitions):
                    return
                await asyncio.sleep(0.3)

    async def stop_coordinator(self) -> None:
        """The broker that coordinates the first offsets partition ends cleanly, and comes back."""
        await self._away((await self._leaders(OFFSETS))[0], signal.SIGTERM)

    async def kill_leader(self) -> None:
        """The leader of the first partition is killed, and comes back."""
        await self._away((await self._leaders(TOPIC))[0], signal.SIGKILL)

    async def restart_all(self) -> None:
        """A rolling restart."""
        for number in self._kafka.cluster.ports:
            await self._away(number, signal.SIGTERM)

    # --- the end

    async def finish(self) -> None:
        """Stop the producers, let the consumers read all, stop them too."""
        for each in self._senders:
            await each.stop()
        acked = [record for each in self._senders for record in each.acked()]
        places = {(record.partition, record.offset) for record in acked}
        for group in self._groups:
            await self._until_read(group, places)
        failed = [line for each in self._senders for line in each.failed()]
        self.counts["acknowledged"] = len(acked)
        self.counts["read twice"] = sum(
            count - 1 for group in self._groups for count in self._read(group).values() if count > 1
        )
        gaps = [later.at_ms - sooner.at_ms for each in self._senders for sooner, later in pairwise(each.acked())]
        self.counts["longest wait for an acknowledgement, ms"] = max(gaps, default=0)
        assert not failed, f"not acknowledged: {failed[:3]} of {len(failed)}"

    async def _until_read(self, group: str, places: set[tuple[int, int]]) -> None:
        end = time.monotonic() + SECONDS
        while missing := places - self._read(group).keys():
            assert time.monotonic() < end, f"{group} did not read {len(missing)} acknowledged records"
            await asyncio.sleep(0.3)

    async def judge(self) -> None:
        """Compare the ledger with the log, which is read directly."""
        direct = self._kafka.direct
        log = await asyncio.to_thread(values_of, direct, TOPIC, PARTITIONS)
        acked = [record for each in self._senders for record in each.acked()]
        lost = [each for each in acked if log.get((each.partition, each.offset)) != each.value]
        assert not lost, f"{len(lost)} acknowledged records are not in the log: {lost[:3]}"
        twice = [value for value, count in Counter(log.values()).items() if count > 1]
        assert not twice, f"{len(twice)} records are in the log twice: {twice[:3]}"

    async def judge_transactions(self) -> None:
        """Each record was transformed once."""
        direct = self._kafka.direct
        end = time.monotonic() + SECONDS
        sent = Counter((await asyncio.to_thread(values_of, direct, TOPIC, PARTITIONS)).values())
        while (got := Counter((await asyncio.to_thread(values_of, direct, TRANSFORMED, PARTITIONS)).values())) != sent:
            if got - sent or time.monotonic() > end:
                raise AssertionError(f"{(got - sent).total()} twice, {(sent - got).total()} missing")
            await asyncio.sleep(0.5)

    async def judge_offsets(self) -> None:
        """Every group has committed the end of each partition, and members leave in time."""
        for each in self.clients:
            await each.stop()
        for group in (*self._groups, "transformer"):
            problem = await asyncio.to_thread(committed_to_the_end, self._kafka.direct, group, TOPIC, PARTITIONS)
            assert not problem, f"{group}: {problem}"

    async def judge_ports(self, allowed: set[int]) -> None:
        """No client was seen with a connection elsewhere."""
        others = sorted(self.seen_ports - allowed)
        assert self.seen_ports, "there were connections"
        assert not others, f"connections to {others}, expected some of {sorted(allowed)}"

    async def play(self, allowed: set[int]) -> None:
        """All of it."""
        await self.step("clients run", self.start, self.goes_on)
        await self.step(
            "leaders move: kafka-reassign-partitions, kafka-leader-election", self.move_leaders, self.goes_on
        )
        await self.step("coordinators of groups and transactions move", self.move_coordinators, self.goes_on)
        await self.step("a coordinator's broker stops and comes back", self.stop_coordinator, self.goes_on)
        await self.step("a leader is killed and comes back", self.kill_leader, self.goes_on)
        await self.step("all brokers restart, one after the other", self.restart_all, self.goes_on)
        await self.step("every group has read all that was acknowledged", self.finish)
        await self.step("the log has each record once", self.judge)
        await self.step("transactions: each record is transformed once", self.judge_transactions)
        await self.step("all offsets are committed", self.judge_offsets)
        await self.step("clients were connected to no other address", lambda: self.judge_ports(allowed))


async def _played(jars: str, *, behind: bool) -> tuple[MovingPlay, list[str]]:
    print("behind the proxy" if behind else "directly", flush=True)
    async with ProxiedKafka(jars, BROKERS, SETTINGS | _BROKER) as kafka:
        brokers = set(kafka.cluster.ports.values())
        proxies = {kafka.proxy.port, *(kafka.proxy.port + 1 + number for number in kafka.cluster.ports)}
        play = MovingPlay(kafka, kafka.proxy.bootstrap_servers if behind else kafka.direct, jars)
        try:
            await play.play(proxies if behind else brokers)
        finally:
            for each in play.clients:
                await each.stop(signal.SIGKILL)
        defects = await kafka.defects()
        print(f"  {kafka.proxy.counts() if behind else ''} {play.counts}", flush=True)
    return play, defects if behind else []


async def main() -> int:
    """Play it, print and keep the results; 1 where the proxy made a difference."""
    jars = await class_path()
    behind, defects = await _played(jars, behind=True)
    result = ProxiedResult(NAME, kafka_version(), {}, behind.problems, defects, behind.counts)
    if not result.is_alike:
        result = replace(result, directly=(await _played(jars, behind=False))[0].problems)
    for line in result.lines():
        print(line, flush=True)
    keep(result)
    return 0 if result.is_alike else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
