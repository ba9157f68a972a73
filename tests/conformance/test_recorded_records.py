"""The recordings of produce, fetch, idempotence and looking up offsets, against the core: every step, every field."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from rejoin.protocol.registry import BY_NAME
from tests.conformance.recorded_records import SCRIPTS, RecordedPlay, Step, read_script

LEFT_OUT: Final = {
    "DescribeTransactions": "there is no transaction coordinator yet",
    "EndTxn": "there is no transaction coordinator yet",
}
"""Why the steps of an API are left out. One that is served is not left out."""

IN_A_TRANSACTION: Final = "it is about a transactional id, and there is no transaction coordinator yet"

STEPS_LEFT_OUT: Final[dict[str, dict[int, str]]] = {
    "produce-transactional-mismatches": dict.fromkeys((2, 7, 8, 10, 15), IN_A_TRANSACTION),
}
"""The same for single steps of a script."""


def why_left_out(name: str, step: Step) -> str | None:
    """Why a step is not played, or none."""
    if step.api not in BY_NAME:
        return LEFT_OUT[step.api]
    return STEPS_LEFT_OUT.get(name, {}).get(step.number)


@pytest.mark.parametrize("over_wire", [False, True], ids=["core", "wire"])
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_field_is_as_recorded(path: Path, over_wire: bool) -> None:
    script = read_script(path)
    play = RecordedPlay(script, over_wire=over_wire)
    differences = []
    for step in script.steps:
        if why_left_out(path.stem, step) is None:
            differences += play.play(step)
        else:
            play.leave_out(step)
    assert differences + play.finish() == []
