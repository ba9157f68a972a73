"""The table of docs/api-versions.md: each API of the recorded broker with its versions, and those of this broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from conformance.api_versions.record import ANSWERED, GOLDEN, STOCK
from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, offered
from rejoin.protocol.registry import BY_KEY, TELEMETRY

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "api-versions.md"
COVERAGE: Final = ROOT / "COVERAGE.md"
BEGIN: Final = "<!-- written by make api-versions -->\n"
END: Final = "<!-- end of what make api-versions writes -->\n"
NO_VERSION: Final = "–"
ONLY_WITH: Final = {
    "unstable": "with `unstable.api.versions.enable`",
    "receiver": "with a reporter that takes clients' metrics",
}
"""Kinds of recorded brokers besides the stock one, each with what a version takes that only it offers."""

_ROW: Final = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)
_NAMED: Final = re.compile(r"[A-Z]\w+ (\d+)")


@cache
def recorded() -> dict[str, Any]:
    """Recorded answers of Kafka's brokers."""
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


def versions_of(kind: str) -> dict[int, tuple[int, int]]:
    """Versions by API key that a recorded broker of this kind lists."""
    return {int(key): (first, last) for key, (first, last) in recorded()["offered"][kind].items()}


def served_unlisted() -> set[int]:
    """Keys that a stock Kafka serves though it does not list them, and that it answers with nothing but zeros."""
    return {int(asked.split()[0]) for asked, answer in recorded()["refused"].items() if answer == ANSWERED}


def own_versions() -> dict[int, tuple[int, int]]:
    """Versions by API key that a node of this broker lists."""
    return {key: (ADVERTISED_FROM.get(key, first), last) for key, (first, last) in offered().items()}


def reasons() -> dict[int, str]:
    """Why an API is missing, by its key: COVERAGE.md has them in its table of APIs that are not offered."""
    _, _, rest = COVERAGE.read_text(encoding="utf-8").partition("\nNot offered, ")
    table, _, _ = rest.partition("\nThese are the versions of Kafka 4.4")
    return {int(key): reason for named, reason in _ROW.findall(table) for key in _NAMED.findall(named)}


def page() -> str:
    """The whole document."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def table() -> str:
    """Rows by API key, and a count of them above."""
    stock, own = versions_of(STOCK), own_versions()
    every = sorted({key for kind in (STOCK, *ONLY_WITH) for key in versions_of(kind)} | own.keys())
    equal = len(stock.items() & own.items())
    rows = [
        f"Kafka {recorded()['kafka']} lists {len(stock)} APIs, and Rejoin {equal} of them in the same versions.",
        "",
        f"| API | key | Kafka {recorded()['kafka']} | Rejoin | |",
        "|---|---|---|---|---|",
    ]
    for key in every:
        name = recorded()["names"].get(str(key)) or BY_KEY[key].name
        shown = (_range(stock.get(key)), _range(own.get(key)))
        rows.append(
            f"| {name} | {key} | {' | '.join(shown)} | {'; '.join(_notes(key)) or ' '} |".replace("|   |", "| |")
        )
    return "\n".join(rows)


def _notes(key: int) -> Iterator[str]:
    stock, own = versions_of(STOCK).get(key), own_versions().get(key)
    for kind, condition in ONLY_WITH.items():
        further = versions_of(kind).get(key)
        if further != stock:
            yield f"Kafka {_range(further)} {condition}"
    with_telemetry = offered(with_telemetry=True).get(key)
    if own is None and with_telemetry is not None:
        yield f"Rejoin {_range(with_telemetry)} with `emulator.client.telemetry`"
    if key in served_unlisted() | {api.key for api in TELEMETRY}:
        yield "both answer it where they do not list it"
    if own is None and stock is not None:
        yield f"missing: {reasons()[key]}"


def _range(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return NO_VERSION
    first, last = versions
    return str(first) if first == last else f"{first}–{last}"
