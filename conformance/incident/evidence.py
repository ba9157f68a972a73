"""Findings against the ledger of an incident, by the evidence: ``python -m conformance.incident.evidence FOLDER ...``.

A folder of ``conformance.incident.proxied`` has three kinds of it from one run: the proxy's journal, the broker's
logs, and the clients' logs. The last two are also read together. For each deed the table says which finding has it,
with its members, and how long after the deed began the finding's first event was; behind it is what was named and not
done.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from conformance.incident.proxied import BROKER_LOGS, CLIENT_LOGS, JOURNAL
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from tests.pipeline.findings.ledgers import LATE_MS, Done, Row, expected, invented
from tests.pipeline.incremental.streams import whole

EVIDENCE: Final = {
    "journal": (JOURNAL,),
    "broker logs": (BROKER_LOGS,),
    "client logs": (CLIENT_LOGS,),
    "both logs": (BROKER_LOGS, CLIENT_LOGS),
}
FAILOVER: Final = "coordinator-failover"


def findings_in(folder: Path, evidence: Iterable[str]) -> list[Row]:
    """The findings of some of a run's evidence, the worst first."""
    events = read_events(find([folder / each for each in evidence]), "UTC").events
    return sorted(whole(events)["findings"], key=order)


def deeds(ledger: dict[str, Any]) -> Iterator[Done]:
    """The deeds, absences of the broker included: these are of no one group."""
    yield from expected(ledger)
    for each in ledger["done"]:
        if each["do"] == "broker-restart":
            yield Done("", FAILOVER, (), each["from_ms"], each["to_ms"])


def found(rows: list[Row], deed: Done) -> Row | None:
    """The finding that has a deed, with its members and its cause."""
    if deed.finding == FAILOVER:
        return next((row for row in rows if row["finding"] == FAILOVER and _at_the_time(row, deed)), None)
    return next((row for row in rows if deed.is_in(row)), None)


def _at_the_time(row: Row, deed: Done) -> bool:
    return bool(row["from_ms"] <= deed.to_ms + LATE_MS and row["to_ms"] >= deed.from_ms)


def instead(rows: list[Row], deed: Done) -> list[str]:
    """Findings that have another cause for the deed's members at its time."""
    members = set(deed.members)
    return [
        row["finding"]
        for row in rows
        if row["group_id"] == deed.group and members & set(row["members"]) and _at_the_time(row, deed)
    ]


def compared(folder: Path) -> tuple[str, dict[str, list[Done]]]:
    """The table of a run, and what each evidence misses of that which must be found."""
    ledger = json.loads((folder / "ledger.json").read_text())
    rows = {name: findings_in(folder, parts) for name, parts in EVIDENCE.items()}
    done = list(deeds(ledger))
    began = min(each["from_ms"] for each in ledger["done"])
    lines = [f"| at | deed | {' | '.join(EVIDENCE)} |", f"|---|---|{'---|' * len(EVIDENCE)}"]
    for deed in done:
        who = ", ".join(deed.members) or deed.group or "broker"
        cells = [_cell(rows[name], deed) for name in EVIDENCE]
        lines.append(f"| {(deed.from_ms - began) / 1_000:.0f} s | {deed.finding} {who} | {' | '.join(cells)} |")
    missed = {name: [each for each in done if each.must and found(rows[name], each) is None] for name in EVIDENCE}
    must = sum(each.must for each in done)
    lines.append("")
    for name in EVIDENCE:
        named = invented(rows[name], [each for each in done if each.finding != FAILOVER])
        lines.append(f"{name}: {must - len(missed[name])} of {must} found, {len(named)} not done")
        lines += [f"  {group}: {finding} {', '.join(members)}" for group, finding, members, _ in named]
    return "\n".join(lines), missed


def _cell(rows: list[Row], deed: Done) -> str:
    row = found(rows, deed)
    if row is None:
        others = ", ".join(dict.fromkeys(instead(rows, deed)))
        return f"no ({others})" if others else "no" if deed.must else "–"
    later = (row["from_ms"] - deed.from_ms) / 1_000
    return f"{'' if row['finding'] == deed.finding else row['finding'] + ' '}{later:+.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.incident.evidence", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    worse = False
    for folder in parser.parse_args().folders:
        text, missed = compared(folder)
        print(f"{folder}\n{text}\n")
        worse = worse or len(missed["journal"]) > len(missed["both logs"])
    if worse:
        sys.exit("the journal shows less than both logs")


if __name__ == "__main__":
    main()
