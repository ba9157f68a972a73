"""The recordings of consumer groups, with classic members among theirs, against a node: every step, every field."""

from __future__ import annotations

from typing import Final

import pytest

from tests.conformance.transactions.recorded_records import RecordedPlay
from tests.conformance.transactions.recorded_scripts import read_script, scripts_of
from tests.paths import ROOT

SCRIPTS: Final = dict(scripts_of(ROOT / "tests/golden/consumer-groups/recorded/groups.jsonl.gz"))

_DRAWN_ID: Final = "Kafka drew the classic member's id, by whose hash `uniform` takes the members"
_ONE_BUCKET: Final = "two members share a bucket of Java's hash map; Kafka's own table decides which comes first"

DIFFERENT: Final = {
    "groups/heartbeat-classic": _DRAWN_ID,
    "groups/heartbeat-classic-beside": _DRAWN_ID,
    "groups/join-classic": _DRAWN_ID,
    "groups/join-classic-beside": _DRAWN_ID,
    "groups/offsets-classic-beside": _DRAWN_ID,
    "groups/delete-classic-beside": _DRAWN_ID,
    "groups/members-006": _ONE_BUCKET,
    "groups/members-015": _ONE_BUCKET,
    "groups/members-031": _ONE_BUCKET,
    "groups/members-037": _ONE_BUCKET,
    "groups/members-040": _ONE_BUCKET,
    "groups/members-044": _ONE_BUCKET,
    "groups/members-046": _ONE_BUCKET,
}
"""Scripts in which another member gets the larger share, and why."""


def differences_in(name: str, *, over_wire: bool) -> list[str]:
    play = RecordedPlay(script := read_script(SCRIPTS[name]), over_wire=over_wire)
    assert script.steps == script.lines
    differences = [each for step in script.steps for each in play.play(step)]
    return differences + play.finish()


@pytest.mark.parametrize("over_wire", [False, True], ids=["core", "wire"])
@pytest.mark.parametrize("name", sorted(SCRIPTS.keys() - DIFFERENT.keys()))
def test_every_field_is_as_recorded(name: str, over_wire: bool) -> None:
    assert differences_in(name, over_wire=over_wire) == []


@pytest.mark.parametrize("name", DIFFERENT)
def test_only_the_choice_of_the_assignor_differs(name: str) -> None:
    """Up to the first difference all is equal, and that is in an assignment or in what follows from one."""
    first = differences_in(name, over_wire=True)[0]
    assert "ssignment" in first or ".memberEpoch" in first


def test_there_are_enough_scripts() -> None:
    assert len(SCRIPTS.keys() - DIFFERENT.keys()) > 100
