"""The recordings of produce, fetch and transactions, against a node: every step, every field."""

from __future__ import annotations

from tests.conformance.transactions.recorded_records import RecordedPlay
from tests.conformance.transactions.recorded_scripts import THREE_BROKERS, Action, read_script, scripts
from tests.suite.cases import for_each

SCRIPTS = {name: lines for name, lines in scripts() if not name.startswith(THREE_BROKERS)}
WAYS = [(name, over_wire) for name in SCRIPTS for over_wire in (False, True) if over_wire or "/" not in name]
"""Over connections all are played, and past them, into the core alone, one of each kind."""


@for_each("name, over_wire", WAYS, ids=lambda way: f"{way[0]}-{'wire' if way[1] else 'core'}", parts=8)
def test_every_field_is_as_recorded(name: str, over_wire: bool) -> None:
    play = RecordedPlay(script := read_script(SCRIPTS[name]), over_wire=over_wire)
    assert script.steps
    differences = []
    for line in script.lines:
        if isinstance(line, Action):
            play.do(line)
        else:
            differences += play.play(line)
    assert differences + play.finish() == []
