"""A docstring begins with its subject, a noun of the field or a verb; prose has the field's nouns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.texts import TEXTS
from tests.paths import ROOT
from tests.sources.modules import PACKAGES, modules, statements, tree_of

pytestmark = pytest.mark.xdist_group("sources")
"""One process parses all modules for the rules about them."""

NO_SUBJECT = re.compile(
    r"(What|The same|Those|That which|That of|(Whether|Where|When) (it|its|they))\b|"
    r"How (?!(much|many|long|often|far|old|fast|large|similar)\b)"
)
"""``How many`` and its like name a quantity."""

ODD = re.compile(r"(?<![\"/-])\b([Ww]hoever|[Nn]obody|[Ss]omebody|[Tt]old|[Tt]ells)\b(?!\")")
"""Words for which the field has nouns: the client, the member, no member. Quoted, they are names of old columns."""


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Every text that stands as a statement: of a module, a class, a function, or behind a name."""
    for node in statements(tree):
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


def odd_words(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from (f"{number}: {found.group()}" for found in ODD.finditer(line))


@pytest.mark.parametrize("room", PACKAGES)
def test_code_speaks_of_members_and_clients(room: str) -> None:
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for _, path in modules(room)}
    assert [f"{path}:{word}" for path, text in texts.items() for word in odd_words(text)] == []


def test_documents_speak_of_members_and_clients() -> None:
    assert [f"{name}:{word}" for name, text in TEXTS.items() for word in odd_words(text)] == []


def test_odd_words_are_seen() -> None:
    assert list(odd_words("Whoever joins is told.\nNobody tells.")) == [
        "1: Whoever",
        "1: told",
        "2: Nobody",
        "2: tells",
    ]
    assert not list(odd_words('the column "told", from /bin/nobody'))


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
