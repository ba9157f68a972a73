"""Groups of the consumer protocol with clients that speak it, and one that moves from the classic protocol and back.

    python -m conformance.clients.consumer_groups [CLIENT ...]

A client's program is given where a node listens, and prints a line of JSON for each step. The table is written to
docs/clients.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from conformance.clients.node import running
from conformance.clients.programs import CLIENTS, HERE, JAVA, class_path, go_life, javascript_life
from conformance.clients.results import DOCUMENT, ROOT

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
RESULTS: Final = HERE / "consumer_groups.jsonl"
BEGIN: Final = "<!-- written by make client-consumer-groups -->\n"
END: Final = "<!-- end of what make client-consumer-groups writes -->\n"
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
        done = subprocess.run(
            [*command, node.bootstrap_servers],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        defects = node.defects()
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{name} printed no step: {(done.stdout + done.stderr)[-2000:]}")
    problems = {line["step"]: line["problem"] for line in lines}
    for step, problem in problems.items():
        print(f"{name} {version}  {step}: {problem or 'passed'}", flush=True)
    for line in defects:
        print(f"the node logged: {line}")
    day = datetime.now(UTC).date().isoformat()
    kept = [each for each in read_results() if each["client"] != name]
    kept.append({"client": name, "version": version, "day": day, "problems": problems})
    kept.sort(key=lambda each: each["client"].lower())
    RESULTS.write_text("".join(f"{json.dumps(each)}\n" for each in kept))
    return not any(problems.values()) and not defects


def read_results() -> list[dict[str, Any]]:
    """The results of each client, which are by the names of the steps."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def table() -> str:
    """The steps of all clients beside each other, and what did not pass."""
    kept = read_results()
    rows = [["step", *(each["client"] for each in kept)], ["---"] * (len(kept) + 1)]
    rows += [[title, *(each[title] for each in kept)] for title in ("version", "day")]
    rows += [[name, *(_cell(each["problems"].get(name)) for each in kept)] for name in STEPS]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    failed = [(each["client"], *pair) for each in kept for pair in each["problems"].items() if pair[1]]
    if failed:
        text += "\n" + "".join(f"- {client}, {name}: {problem}\n" for client, name, problem in failed)
    return text


def write_table() -> None:
    """Put the table into the document."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")


def _cell(problem: str | None) -> str:
    return "–" if problem is None else "**failed**" if problem else "passed"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.consumer_groups")
    parser.add_argument("client", nargs="*", choices=[*PROGRAMS, []], metavar="CLIENT", help="all without any")
    wanted = parser.parse_args().client or list(PROGRAMS)
    good = [run_client(client.name, client.version) for client in CLIENTS if client.name in wanted]
    write_table()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
