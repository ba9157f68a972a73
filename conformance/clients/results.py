"""What each client did, step by step: a file of lines, and the tables that are made of it for docs/clients.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).parent / "results.jsonl"
DOCUMENT: Final = ROOT / "docs" / "clients.md"
BEGIN: Final = "<!-- written by make clients -->\n"
END: Final = "<!-- end of what make clients writes -->\n"

STEPS: Final = (
    "create a topic",
    "produce",
    "produce idempotently",
    "consume in a group of two",
    "a third joins",
    "one leaves",
    "commit",
    "committed offsets",
    "offsets by time",
    "describe a group",
    "list groups",
    "describe configs",
    "alter configs",
    "add partitions",
    "delete records",
    "delete a group",
    "delete a topic",
)
EXAMPLE: Final = "example: a session is lost"


@dataclass(frozen=True, slots=True)
class Result:
    """How one step of one client went. ``problem`` is empty where it passed."""

    client: str
    version: str
    day: str
    step: str
    passed: bool
    problem: str = ""


def read_results() -> list[Result]:
    if not RESULTS.exists():
        return []
    return [Result(**json.loads(line)) for line in RESULTS.read_text().splitlines()]


def replace_results(client: str, results: Iterable[Result]) -> None:
    """Put new results of a client in the place of its old ones, and write the tables anew."""
    others = [each for each in read_results() if each.client != client]
    everything = sorted([*others, *results], key=lambda each: each.client.lower())
    RESULTS.write_text("".join(json.dumps(asdict(each)) + "\n" for each in everything))
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    DOCUMENT.write_text(before + BEGIN + "\n" + tables(everything) + "\n" + END + after)


def tables(results: list[Result]) -> str:
    """The steps of all clients beside each other, those of the tools below, and what did not pass."""
    life = [each for each in results if each.step in (*STEPS, EXAMPLE)]
    rest = [each for each in results if each.step not in (*STEPS, EXAMPLE)]
    clients = list(dict.fromkeys((each.client, each.version, each.day) for each in life))
    passed = {(each.client, each.step): each.passed for each in life}
    rows = [
        ["step", *(client for client, _, _ in clients)],
        ["---"] * (len(clients) + 1),
        ["version", *(version for _, version, _ in clients)],
        ["day", *(day for _, _, day in clients)],
        *([step, *(_cell(passed.get((client, step))) for client, _, _ in clients)] for step in (*STEPS, EXAMPLE)),
    ]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    for name in dict.fromkeys(each.client for each in rest):
        mine = [each for each in rest if each.client == name]
        text += f"\n| {name} {mine[0].version}, {mine[0].day} | |\n| --- | --- |\n"
        text += "".join(f"| `{each.step}` | {_cell(each.passed)} |\n" for each in mine)
    failed = [each for each in results if not each.passed]
    text += "".join(f"\n- {each.client}, {each.step}: {each.problem}" for each in failed) + ("\n" if failed else "")
    return text


def _cell(passed: bool | None) -> str:
    return {None: "–", True: "passed", False: "**failed**"}[passed]
