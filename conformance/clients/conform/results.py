"""Verdicts on the judged clients: a file of lines, and the table of docs/conform-client.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from conformance.clients.results import ROOT

RESULTS: Final = Path(__file__).parent / "results.jsonl"
DOCUMENT: Final = ROOT / "docs" / "conform-client.md"
BEGIN: Final = "<!-- written by make client-conformance -->\n"
END: Final = "<!-- end of what make client-conformance writes -->\n"
TIMED: Final = ("coordinator-moves", "illegal-generation", "epoch-fenced", "removed", "connection-cut", "new-member")
"""Troubles of which the table shows how long they last."""

PASSED, FAILED, NOT_APPLICABLE, NOT_PLAYED = "passed", "failed", "not applicable", "not played"


@dataclass(frozen=True, slots=True)
class TroubleResult:
    """The verdict on one client in one trouble. ``client`` is its title."""

    client: str
    day: str
    trouble: str
    outcome: str
    reason: str = ""
    well_after_ms: int | None = None
    """Time from the first refusal until the client was well, where it passed."""


def read_results() -> list[TroubleResult]:
    """All verdicts, as the file has them."""
    if not RESULTS.exists():
        return []
    return [TroubleResult(**json.loads(line)) for line in RESULTS.read_text().splitlines()]


def replace_results(client: str, results: Iterable[TroubleResult], order: list[str]) -> None:
    """Put new verdicts on a client in the place of its old ones in the same troubles, and write the table anew."""
    new = {(each.client, each.trouble): each for each in results}
    kept = [each for each in read_results() if (each.client, each.trouble) not in new and each.client in order]
    everything = sorted([*kept, *new.values()], key=lambda each: order.index(each.client))
    RESULTS.write_text("".join(json.dumps(asdict(each)) + "\n" for each in everything))
    write_table(everything)


def write_table(results: list[TroubleResult]) -> None:
    """Write the table into the document."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + "\n" + table(results) + "\n" + END + rest.split(END)[1])


def table(results: list[TroubleResult]) -> str:
    """A row for each client, and a line for each failure."""
    text = "| client | day | passed | failed | not applicable |\n|---|---|---|---|---|\n"
    failures = ""
    for client in dict.fromkeys(each.client for each in results):
        mine = [each for each in results if each.client == client]
        failed = [each for each in mine if each.outcome in (FAILED, NOT_PLAYED)]
        names = ", ".join(f"`{each.trouble}`" for each in failed)
        counts = [sum(each.outcome == outcome for each in mine) for outcome in (PASSED, NOT_APPLICABLE)]
        day = max(each.day for each in mine)
        text += f"| {client} | {day} | {counts[0]} | {names} | {counts[1] or ''} |\n"
        failures += "".join(f"- {client}, `{each.trouble}`: {_said(each)}\n" for each in failed)
    return "\n".join(part for part in (text, failures, times(results)) if part)


def times(results: list[TroubleResult]) -> str:
    """Seconds until each client was well again, for some troubles; empty without times."""
    text = "| well again after (s) | " + " | ".join(f"`{each}`" for each in TIMED) + " |\n"
    text += "|---" * (len(TIMED) + 1) + "|\n"
    rows = ""
    for client in dict.fromkeys(each.client for each in results):
        found = {each.trouble: each.well_after_ms for each in results if each.client == client}
        cells = ["" if (ms := found.get(name)) is None else f"{ms / 1000:.1f}" for name in TIMED]
        rows += f"| {client} | {' | '.join(cells)} |\n" if any(cells) else ""
    return text + rows if rows else ""


def _said(result: TroubleResult) -> str:
    return (result.reason if result.outcome == FAILED else f"not played: {result.reason}").replace("|", "\\|")
