"""The recordings of produce, fetch and transactions, against the core: every step, every field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.recorded_records import SCRIPTS, Action, RecordedPlay, read_script


@pytest.mark.parametrize("over_wire", [False, True], ids=["core", "wire"])
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_field_is_as_recorded(path: Path, over_wire: bool) -> None:
    play = RecordedPlay(script := read_script(path), over_wire=over_wire)
    differences = []
    for line in script.lines:
        if isinstance(line, Action):
            play.do(line)
        else:
            differences += play.play(line)
    assert differences + play.finish() == []
