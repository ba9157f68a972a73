"""The recordings of consumer groups, with classic members among theirs, against a node: every step, every field.

The sets ``moves-POLICY`` are random migrations under each policy; they have the ids that Kafka drew.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import Final

import pytest

from tests.conformance.transactions.recorded_records import RecordedPlay
from tests.conformance.transactions.recorded_scripts import Step, read_script, scripts_of
from tests.paths import ROOT
from tests.suite.cases import for_each

RECORDED: Final = sorted((ROOT / "tests/golden/consumer-groups/recorded").glob("*.jsonl.gz"))
SCRIPTS: Final = {name: lines for path in RECORDED for name, lines in scripts_of(path)}

DRAWN: Final = {
    "groups/delete-classic-beside": "003",
    "groups/heartbeat-classic": "0004",
    "groups/heartbeat-classic-beside": "003000000032",
    "groups/join-classic": "00000307",
    "groups/join-classic-beside": "0000000003003002",
    "groups/offsets-classic-beside": "00003007d",
}
"""The first digits of the ids that are drawn here.

The hash of a member's id decides where `uniform` comes to it. Kafka drew the ids of classic members, and recordings
name them only; with these ids they come where Kafka's came.
"""


def differences_in(lines: list[str], *, over_wire: bool, drawn: str = "") -> list[str]:
    """Where a node answers a script otherwise."""
    play = RecordedPlay(script := read_script(lines), over_wire=over_wire, drawn=drawn)
    differences: list[str] = []
    for line in script.lines:
        if isinstance(line, Step):
            differences += play.play(line)
        else:
            play.do(line)
    return differences + play.finish()


@pytest.mark.parametrize("over_wire", [False, True], ids=["core", "wire"])
@for_each("name", sorted(SCRIPTS), parts=4)
def test_every_field_is_as_recorded(name: str, over_wire: bool) -> None:
    assert differences_in(SCRIPTS[name], over_wire=over_wire, drawn=DRAWN.get(name, "")) == []


def test_there_are_enough_scripts() -> None:
    assert len(SCRIPTS) > 200


def kinds_of(lines: list[str]) -> list[str]:
    """The protocols of a group with members, one after the other, as an admin client sees it."""
    kinds = []
    for step in read_script(lines).steps:
        if step.api in ("ConsumerGroupDescribe", "DescribeGroups"):
            (group,) = step.answer["groups"][:1]
            if group["members"] and group["errorCode"] == 0:
                kinds.append("consumer" if step.api == "ConsumerGroupDescribe" else "classic")
    return [kind for kind, _ in groupby(kinds)]


@pytest.mark.parametrize(("policy", "there", "back"), [
    ("bidirectional", True, True), ("upgrade", True, False), ("downgrade", False, True), ("disabled", False, False),
])  # fmt: skip
def test_recorded_groups_move_with_their_members_as_the_policy_allows(policy: str, there: bool, back: bool) -> None:
    moved = Counter(
        move
        for name, lines in SCRIPTS.items()
        if name.startswith(f"moves-{policy}/")
        for move in pairwise(kinds_of(lines))
    )
    assert (moved["classic", "consumer"] > 1, moved["consumer", "classic"] > 1) == (there, back), moved
