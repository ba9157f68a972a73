"""Every file in ``tests/transcripts`` is a claim about the coordinator, and holds when it is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoin.transcript.playing import play
from tests import paths


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
