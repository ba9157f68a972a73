"""Groups of the consumer protocol with clients that speak it, and one that moves from the classic protocol and back.

    python -m conformance.clients.consumer_groups [CLIENT ...]

A client's program is given where a node listens, and prints a line of JSON for each step. The table is written to
docs/clients.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA, class_path, go_life, javascript_life
from conformance.clients.step_table import StepTable, play

STEPS: Final = (
    "three members",
    "a fourth joins",
    "one is killed",
    "a static member restarts",
    "a regular expression begins to match",
    "a topic grows",
    "from classic to consumer",
    "back to classic",
)
LACKS: Final = {
    "franz-go": ("a static member restarts",),
    "@platformatic/kafka": (
        "a static member restarts",
        "a regular expression begins to match",
        "from classic to consumer",
        "back to classic",
    ),
}
"""The steps that a client cannot do."""
COUNTS: Final = ("records while the group moves", "of them read twice", "commits refused")
TABLE: Final = StepTable("client-consumer-groups", "step", STEPS, HERE / "consumer_groups.jsonl", COUNTS)
SECONDS: Final = 900.0
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.session.timeout.ms": 10_000,
    "group.consumer.session.timeout.ms": 10_000,
}
"""Heartbeats come often, and the member that is killed is missed soon."""


def _java() -> list[str]:
    return [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "java" / "ConsumerGroups.java")]


def _confluent() -> list[str]:
    return [sys.executable, "-m", "tests.real_clients.consumer_groups"]


PROGRAMS: Final[dict[str, Callable[[], list[str]]]] = {
    "confluent-kafka": _confluent,
    "Java": _java,
    "franz-go": partial(go_life, "franzgroups"),
    "@platformatic/kafka": partial(javascript_life, "platformatic-groups"),
}


def run_client(name: str, version: str) -> bool:
    """Let a client go through the steps, print how it went, and keep the results."""
    command = PROGRAMS[name]()
    options = [part for setting, value in SETTINGS.items() for part in ("-c", f"{setting}={value}")]
    with running(*options) as node:
        lines = play([*command, node.bootstrap_servers], SECONDS)
        defects = node.defects()
    problems = {line["step"]: line["problem"] for line in lines if "step" in line}
    counts = {line["count"]: line["number"] for line in lines if "count" in line}
    for step, problem in problems.items():
        print(f"{name} {version}  {step}: {problem or 'passed'}", flush=True)
    for what, number in counts.items():
        print(f"{name} {version}  {what}: {number}", flush=True)
    for line in defects:
        print(f"the node logged: {line}")
    TABLE.keep(name, version, problems, counts)
    return not any(problems.values()) and not defects


if __name__ == "__main__":
    sys.exit(TABLE.run("conformance.clients.consumer_groups", PROGRAMS, run_client))
