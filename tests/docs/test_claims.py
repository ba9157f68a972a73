"""docs/claims.md has each statement of the articles in their order, and those about share groups and streams groups,
with a verdict and tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

import pytest

from tests.docs.texts import TEXTS
from tests.paths import ROOT, TRANSCRIPTS

STATEMENTS: Final = [
    f"{article}{number}"
    for article, most in (("A", 16), ("B", 3), ("C", 24), ("D", 22), ("S", 11), ("K", 12))
    for number in range(1, most + 1)
]
_ROW: Final = re.compile(r"^\| ([A-Z]\d+) \|(.*)\|(.*)\|(.*)\|(.*)\|$", re.MULTILINE)
ROWS: Final = [tuple(cell.strip() for cell in row) for row in _ROW.findall(TEXTS["docs/claims.md"])]
SHOWN: Final = [(number, shown) for number, *_, tests in ROWS for shown in re.findall(r"`([^`]+)`", tests)]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The functions of a file that pytest collects."""
    names = {
        each.name
        for each in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return frozenset(name for name in names if name.startswith("test_"))


def test_every_statement_has_its_row_in_the_order_of_the_articles() -> None:
    assert [number for number, *_ in ROWS] == STATEMENTS
    for number, claim, verdict, so, tests in ROWS:
        assert verdict in {"holds", "holds in part", "wrong"}, number
        assert claim, number
        assert "`tests/" in tests, f"{number} has no test"
        assert so or verdict == "holds", f"{number}: what is so instead?"


@pytest.mark.parametrize(("number", "shown"), SHOWN, ids=lambda each: str(each).rpartition("::")[2][:60])
def test_what_shows_it_is_collected(number: str, shown: str) -> None:
    path, has_name, name = shown.partition("::")
    if not has_name:
        assert path.endswith(".txt"), number
        assert TRANSCRIPTS in (ROOT / path).parents, number
        assert (ROOT / path).is_file(), number
        return
    assert re.fullmatch(r"(tests/.*/)test_\w+\.py", path), number
    assert name in functions_of(path), number
