"""All rules, and the findings of one group in the order of their weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import floor, log10
from typing import Any, Final

from rejoin.pipeline.findings.assignments import eager_assignor, idle_members, unbalanced_assignor
from rejoin.pipeline.findings.finding import LOW, RANK, Finding
from rejoin.pipeline.findings.groups import coordinator_failover, lost_records, storm, topic_growth
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.polls import join_held_up, max_poll_exceeded
from rejoin.pipeline.findings.restarts import (
    died_without_leaving,
    duplicate_instance_id,
    fell_silent,
    flapping_member,
    rolling_restart,
    session_too_short,
)

Rule = Callable[[GroupHistory], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    lost_records,
    duplicate_instance_id,
    rolling_restart,
    session_too_short,
    max_poll_exceeded,
    flapping_member,
    join_held_up,
    died_without_leaving,
    fell_silent,
    topic_growth,
    coordinator_failover,
    eager_assignor,
    unbalanced_assignor,
    storm,
    idle_members,
)
"""Causes before what only makes them cost more."""

NAMES: Final = tuple(rule.__name__.replace("_", "-") for rule in RULES)
"""Of the rules, as the column ``finding`` has them."""

EXPLAINS: Final = ("rolling-restart", "session-too-short", "max-poll-exceeded", "flapping-member")
"""Rules that name what a storm came from."""
MOST: Final = 0.75
"""A storm is explained by a finding that has this share of its rebalances."""


def judge(history: GroupHistory) -> list[Finding]:
    """What the rules find, the worst first."""
    found = [finding for rule in RULES for finding in rule(history)]
    return sorted((_explained(each, found) for each in found), key=lambda each: order(each.row()))


def order(row: Mapping[str, Any]) -> tuple[int, float, int, str, str, str]:
    """The key by which rows of findings are in order, the worst first, of one group or of many.

    Severity, costs (roughly), causes before symptoms, then run, group and title.
    """
    score = row["score"] or 0.0
    rough = round(score, 1 - floor(log10(score))) if score > 0 else 0.0
    name = row["finding"]
    place = NAMES.index(name) if name in NAMES else len(NAMES)
    return RANK.get(row["severity"], 3), -rough, place, row.get("run_id", ""), row.get("group_id", ""), row["title"]


def _explained(finding: Finding, others: list[Finding]) -> Finding:
    """A storm whose cause another finding names: then it only points there."""
    if finding.finding != "storm":
        return finding
    for other in others:
        common = set(other.rebalances) & set(finding.rebalances)
        if other.finding in EXPLAINS and len(common) >= MOST * len(finding.rebalances):
            advice = f"Most of it has one cause, see: {other.title}."
            return replace(finding, severity=LOW, setting=None, advice=advice)
    return finding
