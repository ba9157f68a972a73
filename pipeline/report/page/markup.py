"""HTML that every part of the page is made of: tables, tiles, and texts with what HTML would take for its own."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rejoin.pipeline.findings.formatting import clock, count, is_simulated, period


def place(row: Mapping[str, Any]) -> str:
    if not row.get("file"):
        return ""
    name = str(row["file"]).rsplit("/", 1)[-1]
    return f'<span title="{escaped(row["file"])}">{escaped(name)}</span>' + (
        f":{row['line']}" if row.get("line") else ""
    )


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of ready HTML. A column whose name begins with # is of numbers, with : of prose, with ! of raw text.

    Prose has no room beside other columns on a phone: there each row of such a table is a block.
    """
    kinds = [{"#": "n", ":": "text", "!": "line"}.get(name[:1], "") for name in head]
    names = [escaped(name.lstrip("#:!")) for name in head]
    of_class = [f' class="{kind}"' if kind else "" for kind in kinds]
    stacks = "text" in kinds or "line" in kinds
    of_cell = [f'{c} data-head="{name}"' if stacks else c for c, name in zip(of_class, names, strict=True)]
    top = "".join(f"<th{c}>{name}</th>" for c, name in zip(of_class, names, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{c}>{cell}</td>" for c, cell in zip(of_cell, row, strict=True)) + "</tr>" for row in body
    )
    kind = ' class="stacks"' if stacks else ""
    return f'<div class="wide"><table{kind}><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'


def tiles(tiles: Iterable[tuple[str, str]]) -> str:
    inside = "".join(
        f'<div class="tile"><b>{escaped(value)}</b><span class="soft">{escaped(words)}</span></div>'
        for value, words in tiles
    )
    return f'<div class="tiles">{inside}</div>'


def counted(number: int, noun: str, behind: str = "") -> tuple[str, str]:
    """A tile of so many; ``behind`` follows the noun."""
    value, words = count(number, noun).split(" ", 1)
    return value, words + behind


def escaped(value: Any) -> str:
    return html.escape("" if value is None else str(value))


def grouped(value: Any) -> str:
    return "" if value is None else f"{value:,}"


def moment(at_ms: int | None) -> str:
    if at_ms is None:
        return ""
    return clock(at_ms) if is_simulated(at_ms) else period(at_ms, at_ms).removeprefix("on ")
