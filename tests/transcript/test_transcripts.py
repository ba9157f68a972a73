"""Every file in ``scenarios`` is a claim about the coordinator, told as a transcript and held against the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import paths
from tests.transcript.player import Player

SCENARIOS = paths.TRANSCRIPTS
RULE = "----"


def commands_of(text: str) -> list[str]:
    """All commands of a transcript, without what must come out."""
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    heads = [block[: block.index(RULE)] if RULE in block else block for block in blocks]
    return [line for head in heads for line in head if not line.startswith("#")]


def replay(text: str) -> str:
    """The transcript with the expected half of each block as it comes out now."""
    player = Player()
    blocks = []
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        head = lines[: lines.index(RULE)] if RULE in lines else lines
        commands = [line for line in head if not line.startswith("#")]
        if commands:
            out = player.play(commands)
            blocks.append("\n".join([*head, RULE, *out]))
        else:
            blocks.append("\n".join(head))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", sorted(SCENARIOS.rglob("*.txt")), ids=lambda path: str(path.relative_to(SCENARIOS)))
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    assert text.startswith("#"), "a transcript begins with its claim"
    now = replay(text)
    if request.config.getoption("--rewrite"):
        path.write_text(now)
    assert now == text or request.config.getoption("--rewrite")
