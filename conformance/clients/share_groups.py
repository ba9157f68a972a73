"""Share groups with clients that have a share consumer.

    python -m conformance.clients.share_groups [CLIENT ...]

A client's program is given where a node listens, and prints a line of JSON for each step. The table is written to
docs/clients.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA, class_path, go_life
from conformance.clients.step_table import StepTable, play

STEPS: Final = (
    "three members on two partitions",
    "release",
    "reject",
    "renew",
    "a lock runs out",
    "one is killed with records in flight",
    "delivery limit and dead letters",
    "rolling restart",
    "list and describe",
    "offsets: list, alter, delete",
    "delete a share group",
)
LACKS: Final = {
    "franz-go": ("list and describe", "offsets: list, alter, delete", "delete a share group"),
    "confluent-kafka": ("renew", "list and describe", "offsets: list, alter, delete", "delete a share group"),
}
"""Steps that a client has no call for."""
TABLE: Final = StepTable("client-share-groups", "step", STEPS, HERE / "share_groups.jsonl")
SECONDS: Final = 600.0
SETTINGS: Final = {
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.assignment.interval.ms": 0,
}
"""Bounds that let a step wait for the end of a lock in seconds of the clock of this machine."""


def _java() -> list[str]:
    return [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "java" / "ShareGroups.java")]


def _confluent() -> list[str]:
    return [sys.executable, "-m", "tests.real_clients.share_groups"]


PROGRAMS: Final[dict[str, Callable[[], list[str]]]] = {
    "confluent-kafka": _confluent,
    "Java": _java,
    "franz-go": partial(go_life, "franzshares"),
}


def run_client(name: str, version: str) -> bool:
    """Play the steps of a client against a node, print each, and keep the results."""
    command = PROGRAMS[name]()
    options = [part for setting, value in SETTINGS.items() for part in ("-c", f"{setting}={value}")]
    with running(*options) as node:
        lines = play([*command, node.bootstrap_servers], SECONDS)
        defects = node.defects()
    problems = {line["step"]: line["problem"] for line in lines}
    for step, problem in problems.items():
        print(f"{name} {version}  {step}: {problem or 'passed'}", flush=True)
    for line in defects:
        print(f"the node logged: {line}")
    TABLE.keep(name, version, problems)
    return not any(problems.values()) and not defects


if __name__ == "__main__":
    sys.exit(TABLE.run("conformance.clients.share_groups", PROGRAMS, run_client))
