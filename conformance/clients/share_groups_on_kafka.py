"""Lives of share consumers on a real Kafka and on Rejoin: results and requests of each step beside each other.

    python -m conformance.clients.share_groups_on_kafka [CLIENT ...]

A proxy before each broker keeps the requests. Compared are those that join, leave, acquire, acknowledge or are refused;
how often a client beats and fetches in vain is a matter of time. At the end Kafka's formatter prints the records of
``__share_group_state`` on both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from conformance.clients import programs
from conformance.clients.node import running
from conformance.clients.share_groups import PROGRAMS, SECONDS, SETTINGS, STEPS
from conformance.clients.step_table import play
from conformance.clients.tools import CONSUMER, SHARE_FORMAT
from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from conformance.members.proxy import ProxiedExchange, Proxy
from rejoin.conform.judged_broker import look
from rejoin.conform.player.connection import BrokerAccess

GROUPS: Final = dict(
    zip(
        ("three", "release", "reject", "renew", "lock", "kill", "poison", "rolling", "described", "offsets", "deleted"),
        STEPS,
        strict=True,
    )
)
"""The step of each group, by the last word of its name."""
OF_KAFKA: Final = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings without which one broker keeps no state of share groups."""
JOINS, LEAVES, FINAL_EPOCH = 0, -1, -1
BY_TIME: Final = ("three members on two partitions", "renew", "rolling restart")
"""Steps in which time decides how many records a member is given at once."""


@dataclass(frozen=True)
class ShareLife:
    """The problems of each step, the requests of each group by client id, and the records of its state by partition."""

    problems: dict[str, str]
    requests: dict[str, dict[str, list[str]]]
    states: dict[str, dict[int, list[str]]]


@asynccontextmanager
async def broker(name: str, jars: str) -> AsyncIterator[Proxy]:
    """A proxy, and behind it a broker that sends clients to it."""
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(0))
        settings = {name: str(value) for name, value in SETTINGS.items()}
        if name == "kafka":
            cluster = Cluster(jars, 1, OF_KAFKA | settings, advertised={1: proxy.port})
            await stack.enter_async_context(cluster)
            proxy.port_of_broker = cluster.ports[1]
        else:
            settings["advertised.listeners"] = f"PLAINTEXT://{HOST}:{proxy.port}"
            proxy.port_of_broker = free_port()
            options = ("--kafka-port", str(proxy.port_of_broker))
            node = running(*options, *(part for pair in settings.items() for part in ("-c", "=".join(pair))))
            await asyncio.to_thread(node.__enter__)
            stack.push_async_callback(asyncio.to_thread, node.__exit__, None, None, None)
        judged = await look((HOST, proxy.port), BrokerAccess())
        await judged.warm_up("warm-up-")
        await judged.warm_up_share_state("warm-up-")
        yield proxy


def free_port() -> int:
    """A port that was free a moment ago: the node's own port file has the one that it advertises."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


async def life(client: str, name: str, jars: str) -> ShareLife:
    """The life of a client on a broker."""
    async with broker(name, jars) as proxy:
        command = [*PROGRAMS[client](), f"{HOST}:{proxy.port}"]
        lines = await asyncio.to_thread(play, command, SECONDS)
        printed = await asyncio.to_thread(formatted_states, f"{HOST}:{proxy.port}")
        problems = {line["step"]: line["problem"] for line in lines}
        return ShareLife(problems, requests_by_step(proxy.exchanges), states_by_step(printed))


def formatted_states(address: str) -> str:
    """All records of ``__share_group_state`` as Kafka's console consumer prints them."""
    reads = ("--topic", "__share_group_state", "--from-beginning", *SHARE_FORMAT, "--timeout-ms", "5000")
    jars = programs.class_path(programs.HERE / "tools")
    command = [*programs.JAVA, "-cp", jars, CONSUMER, "--bootstrap-server", address, *reads]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    return done.stdout


def states_by_step(printed: str) -> dict[str, dict[int, list[str]]]:
    """Printed records of each step by partition, in their order, without topic ids and times."""
    found: dict[str, dict[int, list[str]]] = {step: {} for step in STEPS}
    decoder, at = json.JSONDecoder(), printed.find("{")
    while at >= 0:
        record, end = decoder.raw_decode(printed, at)
        at = printed.find("{", end)
        key, value = record["key"]["data"], record["value"]
        step = GROUPS.get(key["groupId"].rpartition("-")[2])
        if step is None:
            continue
        if value is not None:
            value = value | {"data": {name: each for name, each in value["data"].items() if "Timestamp" not in name}}
        line = json.dumps([record["key"]["type"], value], sort_keys=True)
        found[step].setdefault(key["partition"], []).append(line)
    return found


def requests_by_step(exchanges: Iterable[ProxiedExchange]) -> dict[str, dict[str, list[str]]]:
    """Requests and answers of the members in each step, by client id and in their order."""
    found: dict[str, dict[str, list[str]]] = {step: {} for step in STEPS}
    members: dict[tuple[str, str], list[str]] = {}
    for each in exchanges:
        if each.api not in ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"):
            continue
        request = json.loads(each.request.to_json(each.version))
        answer = {} if each.response is None else json.loads(each.response.to_json(each.version))
        step = GROUPS[request["groupId"].rpartition("-")[2]]
        member = members.setdefault((step, request["memberId"]), [])
        if not member:
            name = each.client_id
            while name in found[step]:
                name += "'"
            found[step][name] = member
        text = " ".join(described(each.api, request, answer))
        if text:
            member.append(f"{each.api} {text}")
    for member in members.values():
        # librdkafka closes its session and leaves the group at one time, on two connections.
        member[-2:] = sorted(member[-2:]) if _ends(member[-2:]) else member[-2:]
    return found


def _ends(requests: list[str]) -> bool:
    return all({"closes", "leaves"} & set(each.split()) for each in requests)


def described(api: str, request: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    """The words of a request: what it changes, what it acquires, and errors."""
    if api == "ShareGroupHeartbeat":
        yield from (word for epoch, word in ((JOINS, "joins"), (LEAVES, "leaves")) if request["memberEpoch"] == epoch)
    elif request["shareSessionEpoch"] == FINAL_EPOCH:
        yield "closes"
    for partition in _partitions(request, "topics"):
        for batch in partition.get("acknowledgementBatches", ()):
            types = ",".join(map(str, batch["acknowledgeTypes"]))
            yield f"acknowledges {partition['partitionIndex']}:{batch['firstOffset']}-{batch['lastOffset']} as {types}"
    for partition in _partitions(answer, "responses"):
        for row in partition.get("acquiredRecords", ()):
            offsets = f"{partition['partitionIndex']}:{row['firstOffset']}-{row['lastOffset']}"
            yield f"acquires {offsets} ({row['deliveryCount']})"
        for name in ("errorCode", "acknowledgeErrorCode"):
            if partition.get(name):
                yield f"{name} {partition[name]}"
    if answer.get("errorCode"):
        yield f"errorCode {answer['errorCode']}"


def _partitions(message: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    for topic in message.get(name) or ():
        yield from topic["partitions"]


def compared(step: str, kafka: ShareLife, rejoin: ShareLife) -> str:
    """The requests of a step on both brokers in a word, or the first that differs."""
    ours, theirs = rejoin.requests[step], kafka.requests[step]
    if step in BY_TIME:
        kinds = [{word for some in one.values() for each in some for word in _kinds(each)} for one in (theirs, ours)]
        return "the same kinds" if kinds[0] == kinds[1] else f"kinds: {sorted(kinds[0] ^ kinds[1])}"
    if ours == theirs:
        return f"the same {sum(map(len, ours.values()))}"
    for name in theirs | ours:
        for at, (one, other) in enumerate(zip_longest(theirs.get(name, ()), ours.get(name, ()), fillvalue="–")):
            if one != other:
                return f"{name} {at}: Kafka {one}; Rejoin {other}"
    return "other members"


def compared_states(step: str, kafka: ShareLife, rejoin: ShareLife) -> str:
    """The printed records of a step on both brokers in a word, or the first that differs."""
    theirs, ours = kafka.states[step], rejoin.states[step]
    if ours == theirs:
        return f"the same {sum(map(len, ours.values()))}"
    if step in BY_TIME:
        shapes = [{_shape(line) for lines in one.values() for line in lines} for one in (theirs, ours)]
        return "the same fields" if shapes[0] == shapes[1] else f"fields: {sorted(shapes[0] ^ shapes[1])}"
    for index in sorted(theirs | ours):
        for at, (one, other) in enumerate(zip_longest(theirs.get(index, ()), ours.get(index, ()), fillvalue="–")):
            if one != other:
                return f"partition {index}, record {at}: Kafka {one}; Rejoin {other}"
    return "other partitions"


def _shape(line: str) -> tuple[str, ...]:
    """The type of a printed record and the names of its fields."""
    kind, value = json.loads(line)
    return (str(kind), *(sorted(value["data"]) if value else ()))


def _kinds(text: str) -> list[str]:
    """The words of a request without its API, offsets and counts. Time decides which request acknowledges."""
    return [word for word in text.split()[1:] if word[0].isalpha() and word != "as"]


async def run(clients: list[str]) -> int:
    """Play the lives and print the table; 1 where a result differs."""
    jars = await class_path()
    print(
        f"| step | client | Kafka {kafka_version()} | Rejoin | requests | records |\n|---|---|---|---|---|---|",
        flush=True,
    )
    differing = 0
    for client in clients:
        lives = [await life(client, name, jars) for name in ("kafka", "rejoin")]
        for step in STEPS:
            if step in lives[0].problems:
                results = [each.problems.get(step, "–") or "passed" for each in lives]
                differing += results[0] != results[1]
                beside = f"{compared(step, *lives)} | {compared_states(step, *lives)}"
                print(f"| {step} | {client} | {' | '.join(results)} | {beside} |", flush=True)
    return 1 if differing else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Play the lives of share consumers on a real Kafka and on Rejoin.")
    parser.add_argument("client", nargs="*", choices=[*PROGRAMS, []], metavar="CLIENT", help="all without any")
    return asyncio.run(run(parser.parse_args().client or list(PROGRAMS)))


if __name__ == "__main__":
    sys.exit(main())
