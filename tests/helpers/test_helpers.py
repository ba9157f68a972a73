"""The helpers for other languages: their calls are calls of the control API, and their methods those of the table.

Their own tests run in ``make clients``, and here that of JavaScript; where Node.js is missing it is not collected.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from rejoin.coordinator.service.http.control_api.operations import OPERATIONS
from rejoin.coordinator.testing import BlockingFault, BlockingGroupCoordinator, running_in_thread
from tests.paths import ROOT

HELPERS: Final = ROOT / "helpers"
FILES: Final = {
    "Java": HELPERS / "java" / "Rejoin.java",
    "Go": HELPERS / "go" / "rejoin.go",
    "JavaScript": HELPERS / "node" / "rejoin.mjs",
}
METHODS: Final = {
    "Java": r"(?<!@Override\n)^    (?:    )?public (?!static|final|@interface)[\w<>, ?]+ (\w+)\(",
    "Go": r"^func \(\w \*(?:Rejoin|Fault)\) ([A-Z]\w*)\(|^\t(BootstrapServers|URL) ",
    "JavaScript": r"^  (?!constructor|for|if)(?:async )?(\w+)\(.*\{$|^    this\.(url) =|^  (bootstrapServers) =",
}
HANDLE: Final = {"Java": {"id"}, "Go": set[str](), "JavaScript": set[str]()}
"""Attributes that only the handle of a fault has."""
FIELDS: Final = {
    "Java": r'"(\w+)", ',
    "Go": r'"(\w+)":',
    "JavaScript": r"(\w+): ",
}
VIEWS: Final = {("GET", "/groups")}
KNOWN: Final = {(each.method, each.path): set(each.body.model_fields) for each in OPERATIONS}
ORDINARY: Final = {"advance_ms", "until", "group", "hits", "topic", "partitions", "records", "snapshot", "offsets"}


def calls(language: str) -> Iterator[tuple[str, str, set[str]]]:
    """Method and path of each call, with the names of its fields as far as they are written there."""
    source = FILES[language].read_text()
    for found in re.finditer(r'"(GET|POST|DELETE)",\s*(["`]/.*)', source):
        rest = found[2].replace("`", '"')
        path = re.sub(r'"\s*\+\s*[\w.]+(?:\s*\+\s*")?|\$\{this\.id\}', "{id}", rest).removeprefix('"')
        path = re.match(r"[^\",]+", path)[0]  # type: ignore[index]
        yield found[1], path, set(re.findall(FIELDS[language], rest.partition(", ")[2]))


@pytest.mark.parametrize("language", FILES)
def test_each_call_is_one_of_the_control_api(language: str) -> None:
    found = list(calls(language))
    assert [each for each in found if each[:2] not in KNOWN.keys() | VIEWS] == []
    assert [each for each in found if not each[2] <= KNOWN.get(each[:2], set())] == []
    assert set().union(*(each[2] for each in found)) >= ORDINARY, "fields are found where they are written"


def test_all_languages_make_the_same_calls() -> None:
    made = {language: {call[:2] for call in calls(language)} for language in FILES}
    assert made["Java"] == made["Go"] == made["JavaScript"]
    assert len(made["Java"]) > 25


def table() -> list[dict[str, str]]:
    text = (HELPERS / "README.md").read_text().partition("\n| effect |")[2]
    rows = [[cell.strip(" `") for cell in row.split("|")] for row in re.findall(r"^\| (.+) \|$", text, re.MULTILINE)]
    return [dict(zip(("Python", *FILES), row[-4:], strict=True)) for row in rows]


@pytest.mark.parametrize("language", FILES)
def test_the_table_has_every_method(language: str) -> None:
    found = re.findall(METHODS[language], FILES[language].read_text(), re.MULTILINE)
    methods = {name for each in found for name in ([each] if isinstance(each, str) else each) if name}
    assert methods - HANDLE[language] == {row[language] for row in table()} - {""}


def test_names_are_those_of_python() -> None:
    for row in table():
        if name := row["Python"]:
            assert hasattr(BlockingGroupCoordinator, name) or hasattr(BlockingFault, name), name
            camel = re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)
            assert row["JavaScript"] == camel
            assert row["Java"] in {camel, f"{camel}For"}
            assert row["Go"].lower() == camel.lower()


NODE: Final = [HELPERS / "node" / "rejoin.test.mjs"] if shutil.which("node") else []


@pytest.mark.parametrize("test", NODE, ids=lambda path: path.name)
def test_the_helper_for_javascript(test: Path) -> None:
    with running_in_thread(clock="virtual", topics={"orders": 3}) as node:
        found = {"REJOIN_URL": node.url, "REJOIN_COMMAND": f'"{sys.executable}" -m rejoin'}
        command = ["node", str(test)]
        ended = subprocess.run(
            command, env=os.environ | found, capture_output=True, text=True, timeout=300, check=False
        )
    assert ended.returncode == 0, ended.stdout
