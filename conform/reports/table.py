"""The outcomes as text: a row for each set, the differences by kind, and why scripts were not played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rejoin.conform.comparison.outcomes import KINDS, ScriptOutcome

MOST_SHOWN: Final = 20
HEAD: Final = ("set", "scripts", "equal", "known", "different", "not applicable")


def table(outcomes: Sequence[ScriptOutcome], *, shows_all: bool = False) -> str:
    """The whole text."""
    sets = list(dict.fromkeys(each.of_set for each in outcomes))
    rows = [HEAD, *(_row(name, [each for each in outcomes if each.of_set == name]) for name in sets)]
    if len(sets) > 1:
        rows.append(_row("all", outcomes))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(_cell(row, column, widths[column]) for column in range(len(HEAD))).rstrip() for row in rows]
    return "\n".join([*lines, *_differences(outcomes, shows_all), *_reasons(outcomes)])


def _row(name: str, outcomes: Sequence[ScriptOutcome]) -> tuple[str, ...]:
    counts = Counter(each.word for each in outcomes)
    return name, str(len(outcomes)), *(str(counts[word]) for word in HEAD[2:])


def _cell(row: tuple[str, ...], column: int, width: int) -> str:
    return row[column].ljust(width) if column == 0 else row[column].rjust(width)


def _differences(outcomes: Iterable[ScriptOutcome], shows_all: bool) -> list[str]:
    different = [each for each in outcomes if each.differences]
    kinds = Counter(one.kind for each in different for one in each.differences)
    if not different:
        return []
    counted = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
    lines = ["", f"Differences: {counted}"]
    for each in different if shows_all else different[:MOST_SHOWN]:
        more = f" (and {len(each.differences) - 1} more)" if len(each.differences) > 1 and not shows_all else ""
        shown = each.differences if shows_all else each.differences[:1]
        lines += [f"  {each.full_name}", *(f"    {one}{more}" for one in shown)]
    if len(different) > MOST_SHOWN and not shows_all:
        lines.append(f"  and {len(different) - MOST_SHOWN} more scripts; --verbose shows all, --html writes a page")
    return lines


def _reasons(outcomes: Iterable[ScriptOutcome]) -> list[str]:
    reasons = Counter(each.not_applicable for each in outcomes if each.not_applicable is not None)
    if not reasons:
        return []
    return ["", "Not applicable:", *(f"  {count:>4}  {reason}" for reason, count in reasons.most_common())]
