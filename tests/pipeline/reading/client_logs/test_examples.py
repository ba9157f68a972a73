"""Every line of a client has an example: a text that this line reads, and no line before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from rejoin.pipeline.reading.client_logs.families import FAMILIES, known_by_text, matched
from tests.paths import ROOT

EXAMPLES: Final = ROOT / "tests" / "golden" / "client-lines.txt"
"""By client: a text as its library prints it, with ``\\n`` for a line end; below it, the kind and the fields it has."""
_ESCAPED: Final = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}


def texts_of(family: str) -> list[str]:
    section = EXAMPLES.read_text(encoding="utf-8").partition(f"# {family}\n")[2].partition("\n# ")[0]
    return [
        re.sub(r"\\[nt\\]", lambda found: _ESCAPED[found[0]], line)
        for line in section.splitlines()
        if line and not line.startswith("    ")
    ]


def as_read(family: str, text: str) -> str:
    found = matched(family, text)
    named = {"client_id": found.client_id, "group_id": found.group_id, "instance": found.instance, **found.values}
    fields = [f"{name}={value}" for name, value in named.items() if value not in (None, "")]
    return escaped(" | ".join([found.kind or "no known line", *fields]))


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def without_example(family: str) -> Iterator[str]:
    """Lines of a client that no example is read by, each as its text."""
    lines = list(known_by_text(family))
    read = [next((each for each, form in lines if form.fullmatch(text)), None) for text in texts_of(family)]
    used = {id(each) for each in read}
    return (template.text for template, _ in lines if id(template) not in used)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_line_of_a_client_has_an_example(family: str) -> None:
    assert list(without_example(family)) == []


def test_each_example_is_read_with_its_kind_and_fields(request: pytest.FixtureRequest) -> None:
    found = "\n".join(
        f"# {family}\n\n" + "".join(f"{escaped(text)}\n    {as_read(family, text)}\n" for text in texts_of(family))
        for family in FAMILIES
    )
    if request.config.getoption("--rewrite"):
        EXAMPLES.write_text(found, encoding="utf-8")
    assert EXAMPLES.read_text(encoding="utf-8") == found
