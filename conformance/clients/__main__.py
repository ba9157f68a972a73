"""Run clients against a node of each client's own, and write docs/clients.md: ``python -m conformance.clients``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from conformance.clients import burrow, tools
from conformance.clients.helpers import starting_brokers
from conformance.clients.node import IN_MEMORY, KINDS, running_kind
from conformance.clients.programs import CLIENTS, ClientProgram
from conformance.clients.results import EXAMPLE, ROOT, Result, replace_results

LIFE_SECONDS: Final = 600.0
EXAMPLE_SECONDS: Final = 300.0
ALL_STEPS: Final = ""
NEWER: Final = {
    "2.8": {
        ("@platformatic/kafka", ALL_STEPS),  # Metadata 12
        ("Java", "offsets by time"),  # ListOffsets 7: the largest timestamp
        *((tools.NAME, f"kafka-features {each}") for each in ("downgrade", "describe", "upgrade")),
        *((tools.NAME, step.name) for step in tools.SHARE_STEPS),
    }
}
"""Steps that a release cannot serve, by the kind of node; they are left out."""


def main() -> int:
    names = [*(client.name for client in CLIENTS), tools.NAME]
    parser = argparse.ArgumentParser(prog="python -m conformance.clients", description=__doc__)
    known = [*names, burrow.NAME]
    text = f"one of {', '.join(known)}; all but {burrow.NAME} without"
    parser.add_argument("client", nargs="*", metavar="CLIENT", help=text)
    parser.add_argument("--node", choices=KINDS, default=IN_MEMORY, help="the node that they are run against")
    arguments = parser.parse_args()
    wanted, kind = arguments.client or names, arguments.node
    unknown = [name for name in wanted if name not in known]
    if unknown:
        parser.error(f"unknown client {unknown[0]}: expected one of {', '.join(known)}")
    newer = {client for client, step in NEWER.get(kind, ()) if step == ALL_STEPS}
    for name in sorted(newer.intersection(arguments.client)):
        parser.error(f"{name} asks for more than Kafka {kind} has")
    good = [run_client(client, kind) for client in CLIENTS if client.name in wanted and client.name not in newer]
    if tools.NAME in wanted:
        good.append(run_beside(tools.NAME, tools.VERSION, kind, tools.run_steps))
    if burrow.NAME in wanted:
        good.append(run_beside(burrow.NAME, burrow.VERSION, kind, burrow.run_steps))
    return 0 if all(good) else 1


def run_client(client: ClientProgram, kind: str) -> bool:
    """Run a client's program, and its example beside a node in memory; print what they do, and keep the results."""
    command = client.life()
    with running_kind(kind) as node:
        done = subprocess.run(
            [*command, node.bootstrap_servers],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIFE_SECONDS,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(f"{client.name} printed no step: {(done.stdout + done.stderr)[-2000:]}")
        steps = [(line["step"], line["problem"]) for line in lines]
        clean = _clean(node.defects())
    if client.example is not None and kind == IN_MEMORY:
        steps.append((EXAMPLE, _run_example(client.example())))
    return _keep(client.name, client.version, kind, steps) and clean


def _run_example(command: list[str]) -> str:
    """The problem of an example; empty where it passed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=starting_brokers(),
        capture_output=True,
        text=True,
        check=False,
        timeout=EXAMPLE_SECONDS,
    )
    return "" if done.returncode == 0 else " ".join((done.stdout + done.stderr).split())[:300]


def run_beside(name: str, version: str, kind: str, run_steps: Callable[[str], Iterable[tuple[str, str]]]) -> bool:
    """Run the steps of programs that are no clients in the sense above; keep their results."""
    with running_kind(kind) as node:
        return _keep(name, version, kind, run_steps(node.bootstrap_servers)) and _clean(node.defects())


def _keep(client: str, version: str, kind: str, steps: Iterable[tuple[str, str]]) -> bool:
    day = datetime.now(UTC).date().isoformat()
    results = []
    for step, problem in steps:
        if (client, step) in NEWER.get(kind, ()):
            continue
        print(f"{client} {version}  {step}: {problem or 'passed'}", flush=True)
        results.append(Result(client, version, day, step, not problem, problem, kind))
    replace_results(client, kind, results)
    return all(result.passed for result in results)


def _clean(defects: list[str]) -> bool:
    """Whether the node's log has nothing that a client should not cause."""
    for line in defects:
        print(f"the node logged: {line}")
    return not defects


if __name__ == "__main__":
    sys.exit(main())
