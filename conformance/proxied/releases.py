"""A client's life through a proxy before a real Kafka: ``python -m conformance.proxied.releases [--kafka RELEASE]``.

Two consumers of confluent-kafka join a group, commit, and leave one after the other. The journal of the proxy must have
their joins, rebalances, commits and departures; ``rejoin why`` must explain the group from it. With ``--conform`` the
troubles of ``rejoin conform-client`` are played on the same cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from conformance.kafka.broker import Cluster, class_path
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.service import Proxy, ProxyOptions
from rejoin.proxy.watch import RequestWatch

RELEASES: Final = ("3.9.2", "4.4.0")
GROUP: Final = "orders-app"
RECORDS: Final = 200
PATIENCE: Final = 120.0
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "500", "offsets.topic.num.partitions": "4"}
LEAST: Final = {
    "member_joined": 2,
    "rebalance_started": 3,
    "rebalance_completed": 3,
    "member_removed": 1,
    "offsets_committed": 2,
}
"""Events that the journal must have, and how many at least."""
PROGRAM: Final = Path("tests/conform/clients/programs/own_consumer.py")
TROUBLES: Final = ("calm", "coordinator-moves", "removed", "new-member", "topic-grown", "brokers-restart", "close")


def life(servers: str) -> None:
    """Two consumers that share a topic, one after the other and together."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result(PATIENCE)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce("orders", str(number), partition=number % 4)
    assert producer.flush(PATIENCE) == 0
    first = consumer(servers, "first")
    polled(first, 4)
    second = consumer(servers, "second")
    polled(first, 2, second)
    second.close()
    polled(first, 4)
    first.close()


def consumer(servers: str, client_id: str) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "heartbeat.interval.ms": 500,
            "log_level": 0,
        }
    )
    made.subscribe(["orders"])
    return made


def polled(first: Consumer, partitions: int, *others: Consumer) -> None:
    """Poll until the first one has so many partitions, and each has read for a moment."""
    for _ in range(round(PATIENCE / 0.1)):
        for each in (first, *others):
            each.poll(0.05)
        if len(first.assignment()) == partitions and all(each.assignment() for each in others):
            break
    else:
        raise AssertionError(f"never had {partitions} partitions")
    for _ in range(20):
        for each in (first, *others):
            each.poll(0.05)


async def one(release: str, *, conform: bool) -> list[str]:
    """Play the life on a release; the problems that were found."""
    jars = await class_path(release)
    with tempfile.TemporaryDirectory(prefix="proxied-") as folder:
        async with Cluster(jars, 1, SETTINGS) as kafka:
            address = kafka.addresses[1]
            watch = RequestWatch(LineFile(Path(folder) / "kafka-request.log"))
            proxy = Proxy(ProxyOptions(bootstrap=(address,)), watch)
            await proxy.start()
            try:
                await asyncio.to_thread(life, proxy.bootstrap_servers)
            finally:
                await proxy.stop(drain=True)
                watch.close()
            problems = judged(Path(folder), proxy)
            problems += await explained(Path(folder))
            if conform:
                await played(f"{address[0]}:{address[1]}")
        return [f"Kafka {release}: {each}" for each in problems]


def judged(folder: Path, proxy: Proxy) -> list[str]:
    events = read_events(find([folder]), "UTC").events
    counts = Counter(events.column("event").to_pylist())
    print(", ".join(f"{name} {counts[name]}" for name in LEAST), f"; not known: {dict(proxy.counters.unknown)}")
    return [f"{counts[name]} {name}, expected {least}" for name, least in LEAST.items() if counts[name] < least]


async def ran(*words: str) -> tuple[int, str]:
    process: Any = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rejoin", *words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await asyncio.wait_for(process.communicate(), 10 * PATIENCE)
    return process.returncode, said.decode()


async def explained(folder: Path) -> list[str]:
    code, said = await ran("why", GROUP, str(folder))
    print(said)
    wanted = ("3 rebalances", "2 joined", "left")
    return [f"rejoin why said nothing of {each!r}" for each in wanted if each not in said] if code == 0 else [said]


async def played(servers: str) -> None:
    words = [word for name in TROUBLES for word in ("--only", name)]
    _, said = await ran(
        "conform-client", "--proxy", servers, *words, "--timeout", "60", "--", sys.executable, str(PROGRAM)
    )
    print(said)


async def main() -> int:
    """Play on the releases that are wanted; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--kafka", action="append", help="a release; several times. The default is the oldest and newest"
    )
    parser.add_argument("--conform", action="store_true", help="play the troubles of conform-client, too")
    wanted = parser.parse_args()
    problems = [each for release in wanted.kafka or RELEASES for each in await one(release, conform=wanted.conform)]
    for each in problems:
        print(each, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
