"""The recordings of three brokers, against three brokers in one process: every step, every field."""

from __future__ import annotations

import pytest

from tests.conformance.transactions.cluster_play import played
from tests.conformance.transactions.recorded_scripts import THREE_BROKERS, Action, read_script, scripts

SCRIPTS = {name: lines for name, lines in scripts() if name.startswith(THREE_BROKERS)}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_every_field_is_as_recorded(name: str) -> None:
    script = read_script(SCRIPTS[name])
    assert (script.brokers, bool(script.steps)) == (3, True)
    differences = []
    async with played(script) as play:
        for line in script.lines:
            if isinstance(line, Action):
                await play.act(line)
            else:
                differences += play.play(line)
        assert differences + play.finish() == []
