"""A part of a group's logs says no more than what was done: random members, windows of time and orders, in wrappers.

The ledger of each recording has all that was done to its members. All of its logs say more than a part of them, so
each finding of a part is one of theirs, or a weaker form of one. ``make wrapped-seeds`` runs more seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from benchmarks.recovered.from_client_logs import Action
from tests.pipeline.findings.ledgers import CAUSES
from tests.pipeline.reading.cuts import Cut, Row, cut, cut_of_broker, done_to, findings_of_all, findings_of_files

FOUND: Final = (117, 121, 140, 144, 192, 373, 395)
"""Seeds that showed a defect, of the product or of this test."""
SEEDS: Final = (
    range(*map(int, os.environ["CUT_SEEDS"].split(":"))) if "CUT_SEEDS" in os.environ else (*range(12), *FOUND)
)
SEEDS_OF_BROKERS: Final = (*range(12), 13, 32, 53)
EARLY_MS: Final = 1_000
LATE_MS: Final = 60_000
"""An action shows at the latest so long after its end."""
MUST_HAVE_BEEN: Final[Mapping[str, tuple[str, ...]]] = {
    "died-without-leaving": ("kill",),
    "session-too-short": ("pause", "static-restart"),
    "session-expired": ("pause", "broker-restart", "slow-handler"),
    "fell-silent": ("kill", "pause", "slow-handler", "static-restart"),
    "max-poll-exceeded": ("slow-handler", "pause"),
    "join-held-up": ("slow-handler", "pause", "kill", "broker-restart"),
    "rolling-restart": ("restart",),
    "flapping-member": ("restart", "kill", "start", "stop"),
    "membership-changed": ("start", "stop", "kill"),
    "topic-growth": ("grow",),
    "coordinator-failover": ("broker-restart",),
    "coordinator-lost-again": ("broker-restart",),
    "duplicate-instance-id": ("duplicate",),
    # Nothing of this kind was done to any of them.
    "rejoin-loop": (),
    "rebalance-still-open": (),
    "owned-not-moving": (),
    "lost-records": (),
    "two-applications": (),
    "inconsistent-protocols": (),
    "subscription-changed": (),
    "changing-instance-ids": (),
    "thrashing-autoscaler": (),
}
"""The actions that a finding needs near it, for each of its members."""

SEEN_BY_BROKERS: Final[Mapping[str, tuple[str, ...]]] = {"session-too-short": ("kill", "slow-handler")}
"""More actions that a finding may be about where a broker's log is the only one: it shows that a member was silent and
came back, and not that its process was killed and started, or was busy."""

NAMELESS: Final = ("a member", "a consumer", "a client")


def untrue(row: Row, done: Sequence[Action], alone: str | None = None, *, of_broker: bool = False) -> Iterator[str]:
    """The statements of a finding that the ledger does not have. ``alone``: the member whose log is the only one."""
    members = {each.member for each in done}
    near = [each for each in done if each.from_ms - EARLY_MS <= row["to_ms"] and row["from_ms"] <= each.to_ms + LATE_MS]
    if (kinds := MUST_HAVE_BEEN.get(row["finding"])) is not None:
        kinds += SEEN_BY_BROKERS.get(row["finding"], ()) if of_broker else ()
        of_kind = [each for each in near if each.what in kinds]
        if not of_kind:
            yield "nothing of the kind was done"
        for member in row["members"]:
            if of_broker and called(member) not in members:
                # A member of KIP-848 whose join is before the window has no name but its id.
                continue
            if not any(each.member in (None, called(member) if member not in NAMELESS else alone) for each in of_kind):
                yield f"not to {member}"
    if "did not come back" in row["title"] + row["text"]:
        gone = {each.member for each in near if each.what in ("kill", "stop")}
        yield from (f"{member} came back" for member in row["members"] if called(member) not in gone)


def called(member: str) -> str:
    """A member's name in the ledger: one without an id is called by its file, and by a host in it, with a number."""
    _, *names = member.partition("#")[0].split("/")
    return names[0] if names else member.partition("#")[0]


def test_the_ledger_justifies_each_cause() -> None:
    assert set(CAUSES) <= set(MUST_HAVE_BEEN)


def unjustified(chosen: Cut, rows: Sequence[Row]) -> list[tuple[str, list[str], str, str]]:
    """The findings from a part of a group's logs that the ledger of the group does not justify."""
    done, alone = done_to(chosen.group), chosen.members[0].removesuffix(".log.gz") if len(chosen.members) == 1 else None
    return [
        (row["finding"], row["members"], row["title"], wrong)
        for row in rows
        for wrong in untrue(row, done, alone, of_broker=chosen.of_broker)
    ]


BY_ITS_OWN_WORDS: Final = (
    "session-expired",
    "rejoined-by-its-own-log",
    "coordinator-lost-again",
    "assigned-nothing",
    "refused-commits",
)
"""Findings from the lines of one member. In the logs of its group, they are part of any finding about that time."""

IN_THE_WHOLE: Final[Mapping[str, tuple[str, ...]]] = {
    # Whether the member came back, and so what its silence was, is outside the window.
    "fell-silent": ("session-too-short", "died-without-leaving", "rolling-restart", "max-poll-exceeded", "storm"),
    "died-without-leaving": ("session-too-short",),
    # Its other absences, or those of the other members, are outside the window.
    "session-too-short": ("flapping-member",),
    "membership-changed": ("coordinator-failover",),
    # The outage that held up the join began before the window.
    "join-held-up": ("coordinator-failover",),
}
"""Other findings of the whole that are about the same as a finding of a part."""


def unstated(chosen: Cut, rows: Sequence[Row]) -> list[tuple[str, list[str], str, list[str]]]:
    """The findings from a part of a group's logs that the whole of them does not have, with those it has near them."""
    found = []
    for row in rows:
        near = {each["finding"] for each in findings_of_all(chosen.group, chosen.of_broker) if may_be_one(row, each)}
        same = near & {row["finding"], *IN_THE_WHOLE.get(row["finding"], ())}
        if not same and not (near and row["finding"] in BY_ITS_OWN_WORDS):
            found.append((row["finding"], row["members"], row["title"], sorted(near)))
    return found


def may_be_one(one: Row, other: Row) -> bool:
    """Two findings at about the same time that may be about the same member."""
    is_near = one["from_ms"] - LATE_MS <= other["to_ms"] and other["from_ms"] <= one["to_ms"] + LATE_MS
    members = [{called(each) for each in row["members"] if each not in NAMELESS} for row in (one, other)]
    return is_near and (not all(members) or bool(members[0] & members[1]))


def findings_in(chosen: Cut, folder: Path) -> list[Row]:
    files = list(chosen.files())
    rows = findings_of_files(folder / chosen.group, files) if any(lines for _, lines in files) else []
    return [row for row in rows if row["group_id"] == chosen.group.rpartition("/")[2] or not chosen.of_broker]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_part_of_a_groups_logs_says_no_more_than_what_was_done_and_than_all_of_them(
    seed: int, tmp_path: Path
) -> None:
    chosen = cut(seed)
    rows = findings_in(chosen, tmp_path)
    assert unjustified(chosen, rows) == [], chosen
    assert unstated(chosen, rows) == [], chosen


@pytest.mark.parametrize("seed", SEEDS_OF_BROKERS)
def test_a_part_of_a_brokers_log_says_no_more_than_what_was_done_and_than_all_of_it(seed: int, tmp_path: Path) -> None:
    chosen = cut_of_broker(seed)
    rows = findings_in(chosen, tmp_path)
    assert unjustified(chosen, rows) == [], chosen
    assert unstated(chosen, rows) == [], chosen


def test_an_invented_finding_is_unstated(tmp_path: Path) -> None:
    chosen = cut(17)
    row, *_ = findings_in(chosen, tmp_path)
    assert unstated(chosen, [row | {"finding": "thrashing-autoscaler"}]) != []
    assert unstated(chosen, [row | {"from_ms": 0, "to_ms": 1}]) != []
