"""A docstring begins with its subject: a noun of the field, or a verb."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.paths import ROOT
from tests.sources.modules import PACKAGES, modules, tree_of

NO_SUBJECT = re.compile(
    r"(What|The same|Those|That which|That of|(Whether|Where|When) (it|its|they))\b|"
    r"How (?!(much|many|long|often|far|old|fast|large|similar)\b)"
)
"""``How many`` and its like name a quantity."""


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Every text that stands as a statement: of a module, a class, a function, or behind a name."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value


@pytest.mark.parametrize("room", PACKAGES)
def test_a_docstring_begins_with_its_subject(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{each.lineno}: {str(each.value).strip().splitlines()[0]}"
        for _, path in modules(room)
        for each in docstrings(tree_of(path))
        if NO_SUBJECT.match(str(each.value).strip())
    ]
    assert wrong == []


def test_the_pattern_sees_such_a_beginning() -> None:
    for text in (
        "What a node is made of.",
        "The same of one partition.",
        "How a broker is.",
        "Those that are left.",
        "Whether it is.",
    ):
        assert NO_SUBJECT.match(text)
    assert not NO_SUBJECT.match("How many groups there are.")
