"""Every transcript in ``tests/transcripts`` and in the documents is a claim that holds when it is played."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rejoin.transcript.player import play
from tests import paths
from tests.docs.texts import TEXTS

IN_DOCUMENTS = [
    (name, text)
    for name, document in TEXTS.items()
    for text in re.findall(r"^```\n(#.*?\n----\n.*?)^```", document, re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize(
    "path", sorted(paths.TRANSCRIPTS.rglob("*.txt")), ids=lambda path: str(path.relative_to(paths.TRANSCRIPTS))
)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    assert text.startswith("#"), "a transcript begins with its claim"
    now = play(text).text
    if request.config.getoption("--rewrite"):
        path.write_text(now)
    assert now == text or request.config.getoption("--rewrite")


@pytest.mark.parametrize(("name", "text"), IN_DOCUMENTS, ids=[name for name, _ in IN_DOCUMENTS])
def test_a_transcript_in_a_document(name: str, text: str) -> None:
    assert play(text).text == text


def test_there_are_transcripts_in_documents() -> None:
    assert {name for name, _ in IN_DOCUMENTS} >= {"ARCHITECTURE.md", "docs/transcripts.md"}
