"""Results of each client, step by step: a file of lines, and tables of them for docs/clients.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from conformance.clients.node import IN_MEMORY, KINDS

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
    "commit a transaction",
    "abort a transaction",
    "fence a zombie",
)
EXAMPLE: Final = "example: a session is lost"


@dataclass(frozen=True, slots=True)
class Result:
    """How one step of one client went, against one kind of node. ``problem`` is empty where it passed."""

    client: str
    version: str
    day: str
    step: str
    passed: bool
    problem: str = ""
    node: str = IN_MEMORY


def read_results() -> list[Result]:
    if not RESULTS.exists():
        return []
    return [Result(**json.loads(line)) for line in RESULTS.read_text().splitlines()]


def replace_results(client: str, node: str, results: Iterable[Result]) -> None:
    """Put new results of a client against a kind of node in the place of its old ones, and write the tables anew."""
    others = [each for each in read_results() if (each.client, each.node) != (client, node)]
    everything = sorted([*others, *results], key=lambda each: (each.client.lower(), each.node))
    RESULTS.write_text("".join(json.dumps(_line(each)) + "\n" for each in everything))
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    DOCUMENT.write_text(before + BEGIN + "\n" + tables(everything) + "\n" + END + after)


def _line(result: Result) -> dict[str, object]:
    found = asdict(result)
    if result.node == IN_MEMORY:
        del found["node"]
    return found


def tables(results: list[Result]) -> str:
    """The steps of all clients beside each other, those of the tools below, and what did not pass."""
    in_memory = [each for each in results if each.node == IN_MEMORY]
    life = [each for each in in_memory if each.step in (*STEPS, EXAMPLE)]
    rest = [each for each in in_memory if each.step not in (*STEPS, EXAMPLE)]
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
    text += _other_nodes(results)
    failed = [each for each in results if not each.passed]
    text += "".join(f"\n- {each.client}, {KINDS[each.node]}, {each.step}: {each.problem}" for each in failed)
    return text + ("\n" if failed else "")


def _other_nodes(results: list[Result]) -> str:
    """How many steps each client passed against the other kinds of nodes."""
    others = [each for each in results if each.node != IN_MEMORY]
    kinds = [kind for kind in KINDS if any(each.node == kind for each in others)]
    rows = [["passed steps", *(KINDS[kind] for kind in kinds)], ["---"] * (len(kinds) + 1)]
    for client in dict.fromkeys(each.client for each in others):
        row = [client]
        for kind in kinds:
            mine = [each for each in others if (each.client, each.node) == (client, kind)]
            row.append(f"{sum(each.passed for each in mine)} of {len(mine)}, {mine[0].day}" if mine else "–")
        rows.append(row)
    return "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows) if kinds else ""


def _cell(passed: bool | None) -> str:
    return {None: "–", True: "passed", False: "**failed**"}[passed]
