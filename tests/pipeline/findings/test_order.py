"""Findings have one order, wherever they are shown."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.data import GroupReport, Report, in_order
from rejoin.pipeline.report.page import render


def row(group: str, severity: str, score: float, finding: str, run: str = "r") -> dict[str, Any]:
    title = f"{finding} in {group} of {run} ({severity})"
    return {
        "run_id": run, "group_id": group, "severity": severity, "score": score, "finding": finding,
        "title": title, "text": "", "setting": None, "advice": None, "numbers": {},
        "from_ms": 0, "to_ms": 1, "members": [], "rebalances": [], "evidence": [], "confidence": "exact",
    }  # fmt: skip


WORST_FIRST = [
    row("b", "high", 70.0, "storm"),
    # Costs count roughly: of much the same, the cause comes before the symptom.
    row("b", "medium", 20.1, "rolling-restart"),
    row("a", "medium", 20.4, "storm"),
    row("b", "medium", 20.3, "storm"),
    row("a", "medium", 20.2, "storm", run="s"),
    row("a", "low", 1.0, "no-rule-of-ours"),
]


def test_the_worst_comes_first_whatever_the_order_of_rows() -> None:
    for rows in permutations(WORST_FIRST):
        assert sorted(rows, key=order) == WORST_FIRST


def test_the_console_has_the_order_of_watch_and_the_page_has_it_in_each_group() -> None:
    groups: dict[tuple[str, str], GroupReport] = {}
    for each in reversed(WORST_FIRST):
        key = (each["run_id"], each["group_id"])
        group = groups.setdefault(key, GroupReport(*key, 0, 1))
        group.findings = sorted([*group.findings, each], key=order)
    report = Report("title", list(groups.values()))
    assert [each for _, each in in_order(report)] == WORST_FIRST
    page = render(report)
    for group in report.groups:
        here = [page.index(f"<b>{each['title']}</b>") for each in WORST_FIRST if each in group.findings]
        assert here
        assert here == sorted(here)
