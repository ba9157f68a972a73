"""Administrators' calls of three clients on a real Kafka and on Rejoin: whether their results are equal.

    python -m conformance.clients.admin.calls [CLIENT ...]

The clients make their calls in order, one client after the other. A result is a text or an error, without what no two
brokers share. The words of an error are printed where they are others, and not compared: those of Rejoin are its own.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, NamedTuple

from conformance.clients.admin.both_brokers import AUTHORIZED, kafka, rejoin
from conformance.clients.programs import CLIENTS, HERE, JAVA, class_path, go_life
from conformance.clients.step_table import StepTable, play
from conformance.kafka.broker import kafka_version
from rejoin.conform.judged_broker import look
from rejoin.conform.player.connection import BrokerAccess

SECONDS: Final = 400.0
TOPIC: Final = "admin-topic"
NODE: Final = "1"
PROGRAMS: Final[dict[str, Callable[[], list[str]]]] = {
    "confluent-kafka": lambda: [sys.executable, "-m", "conformance.clients.admin.confluent_calls"],
    "franz-go": lambda: go_life("kadmcalls"),
    "Java": lambda: [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "admin" / "AdminCalls.java")],
}
CALLS: Final = (
    "create ACLs",
    "create ACLs, prefixed",
    "create ACLs, refused",
    "describe ACLs",
    "describe ACLs that match",
    "delete ACLs",
    "alter quotas",
    "alter quotas, refused",
    "describe quotas",
    "describe quotas of a user",
    "remove quotas",
    "alter users of SCRAM",
    "alter users of SCRAM, refused",
    "describe users of SCRAM",
    "describe an unknown user",
    "remove a user of SCRAM",
    "create a token without a login",
    "describe tokens without a login",
    "renew a token without a login",
    "expire a token without a login",
    "alter a subscription of metrics",
    "describe a subscription of metrics",
    "list subscriptions of metrics",
    "list resources with settings",
    "remove a subscription of metrics",
    "elect preferred leaders",
    "elect any leaders",
    "reassign a partition",
    "reassign to an unknown broker",
    "cancel a reassignment",
    "list reassignments",
    "describe log directories",
    "move to an unknown log directory",
    "alter settings of a broker",
    "describe settings of a broker",
    "describe the quorum",
    "unregister an unknown broker",
    "unregister an unknown controller",
    "add a voter",
    "remove a voter",
)
TABLE: Final = StepTable(
    "client-admin-calls", "call", CALLS, Path(__file__).with_name("calls.jsonl"), words=("equal", "**differs**")
)
NOTHING: Final = "nothing"
_OWN: Final = re.compile(r"127\.0\.0\.1:\d+|(?<=\(id: )\d+")
LONGEST: Final = 60
"""Characters of a result in the list of those that differ."""


class CallResult(NamedTuple):
    """The result of a call as a text, and the words of its errors."""

    text: str
    words: str = ""


async def prepare(servers: str) -> None:
    """Make the topic of the calls."""
    host, port = servers.split(":")
    broker = await look((host, int(port)), BrokerAccess())
    topic = {"name": TOPIC, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    await broker.ask("CreateTopics", {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}, 7)


async def results(
    broker: AbstractAsyncContextManager[str], commands: dict[str, list[str]]
) -> dict[str, dict[str, CallResult]]:
    """Results of each client's calls on a broker, one client after the other."""
    found = {}
    async with broker as servers:
        await prepare(servers)
        for client, command in commands.items():
            lines = await asyncio.to_thread(play, [*command, servers], SECONDS)
            found[client] = {
                line["call"]: CallResult(_shared(line["result"]), _shared(line["words"])) for line in lines
            }
    return found


def _shared(text: str) -> str:
    return _OWN.sub("...", text)


def problem(theirs: CallResult, ours: CallResult) -> str:
    """Differences between the results of a call on Kafka and on Rejoin; empty where there is none."""
    return "" if theirs.text == ours.text else f"Kafka {_short(theirs.text)}; Rejoin {_short(ours.text)}"


def _short(result: str) -> str:
    text = result.replace("|", "/")
    return f"`{text[:LONGEST] or NOTHING}{'…' if len(text) > LONGEST else ''}`"


async def compare(clients: Iterable[str]) -> bool:
    """Call on both brokers, and write the table; whether all results are equal."""
    commands = {client: PROGRAMS[client]() for client in clients}
    theirs = await results(kafka(), commands)
    ours = await results(rejoin({**AUTHORIZED, "broker.id": NODE}), commands)
    versions = {client.name: client.version for client in CLIENTS}
    problems = {
        client: {call: problem(result, ours[client].get(call, CallResult(NOTHING))) for call, result in found.items()}
        for client, found in theirs.items()
    }
    for client, each in problems.items():
        TABLE.keep(client, versions[client], each)
        different = [f"{call}: {text}" for call, text in each.items() if text]
        print(f"{client}: {len(each) - len(different)} of {len(each)} results equal those on Kafka {kafka_version()}")
        others = [
            f"{call}, in other words: {_short(result.words)}; {_short(ours[client][call].words)}"
            for call, result in theirs[client].items()
            if not each[call] and result.words != ours[client][call].words
        ]
        print("".join(f"  {line}\n" for line in (*different, *others)), end="")
    TABLE.write()
    return not any(text for each in problems.values() for text in each.values())


def main() -> int:
    """The command line; 1 where a result differs."""
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.admin.calls")
    parser.add_argument("client", nargs="*", choices=[*PROGRAMS, []], metavar="CLIENT", help="all without any")
    return 0 if asyncio.run(compare(parser.parse_args().client or list(PROGRAMS))) else 1


if __name__ == "__main__":
    sys.exit(main())
