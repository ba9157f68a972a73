"""Tables of the documents that are made from what a test finds; ``pytest --rewrite`` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def rows_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; numbers with commas for thousands."""
    lines = [head, ["---"] * len(head), *([_shown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |").replace(" --- ", "---") for line in lines)


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def check_table(page: Path, heading: str, table: str, *, rewrite: bool) -> None:
    """Assert that the first table below a heading is this one; or write it there."""
    before, _, section = page.read_text().partition(f"\n{heading}\n")
    intro, shown, after = re.split(r"((?:^\|.*\n)+)", section, maxsplit=1, flags=re.MULTILINE)
    if rewrite:
        page.write_text(f"{before}\n{heading}\n{intro}{table}\n{after}")
    else:
        assert shown.strip() == table
