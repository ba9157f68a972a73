"""The first look at a report: the answer is at its top, and what is inferred is marked wherever it is shown."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.console import show
from rejoin.pipeline.report.data import GroupReport, Report, cost_of, in_order
from rejoin.pipeline.report.page import MOST_ANSWERS, render
from rejoin.pipeline.report.run import make_report
from rejoin.pipeline.vocabulary import EXACT, INFERRED
from tests.paths import GOLDEN

EXCERPTS: Final = GOLDEN / "public-logs"
FILES: Final = (
    "aiokafka-celery-session-expired.log",
    "broker-a-leader-that-rejoins.log",
    "java-late-and-back.log",
    "kafkajs-thrown-out-again-and-again.log",
    "librdkafka-in-clickhouse-session-lost.log",
    "librdkafka-php-session-lost.log",
)


def printed(report: Report, width: int) -> str:
    text = StringIO()
    show(report, Console(file=text, width=width), page=None, tables=None)
    return text.getvalue()


@pytest.fixture(scope="module", params=FILES)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    out = tmp_path_factory.mktemp("report")
    return make_report([EXCERPTS / request.param], out), out


def test_the_page_begins_with_the_worst_finding_and_has_it_open(report: tuple[Report, Path]) -> None:
    made, _ = report
    page = render(made)
    body = page[page.index("<main>") :]
    worst = [row["title"] for _, row in in_order(made)]
    assert worst
    assert 0 < body.index(worst[0].partition("'")[0]) < body.index('class="tiles"')
    assert body.count('<details class="finding') == len(worst)
    assert len(re.findall(r'<details class="finding \w+" open>', body)) == len(made.groups)


def test_a_page_without_a_chart_says_nothing_of_one(report: tuple[Report, Path]) -> None:
    made, _ = report
    page = render(made)
    drawn = [each for each in made.groups if each.rebalances or each.partitions or each.sessions]
    assert page.count("Drag to zoom in") == page.count('<div class="chart">') == len(drawn)
    assert page.count("data-group=") == len(drawn)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_the_worst_finding_within_its_first_lines(report: tuple[Report, Path], width: int) -> None:
    made, _ = report
    lines = printed(made, width).splitlines()
    first = next(nth for nth, line in enumerate(lines) if line.startswith(("high", "medium", "low")))
    assert first <= 2 + len(made.coverage)
    assert max(map(len, lines)) <= width


def test_what_is_inferred_is_marked_in_tables_on_the_page_and_in_a_terminal(report: tuple[Report, Path]) -> None:
    made, out = report
    tables = {name: pq.read_table(out / "tables" / name).to_pylist() for name in ("events", "rebalances", "findings")}
    assert {row["confidence"] for rows in tables.values() for row in rows} <= {EXACT, INFERRED}
    guessed = {(row["file"], row["line"]) for row in tables["events"] if row["confidence"] == INFERRED}
    if any("inferred" in note for note in made.coverage):
        assert guessed
    findings = [row for group in made.groups for row in group.findings]
    inferred = [row for row in findings if row["confidence"] == INFERRED]
    page, text = render(made), printed(made, 1_000)
    assert page.count("(inferred)</span>") == len(inferred) + min(len(inferred), MOST_ANSWERS)
    for row in inferred:
        line = next(each for each in text.splitlines() if row["title"] in each)
        assert "inferred" in line or "Probably: " in line
    rebalances = sum(row["confidence"] == INFERRED for row in tables["rebalances"])
    assert (f"({rebalances} inferred)" in page) == (f"({rebalances} inferred)" in text) == (rebalances > 0)


def finding(severity: str, score: float, title: str) -> dict[str, Any]:
    return {"severity": severity, "score": score, "finding": "storm", "title": title}


def test_findings_of_several_groups_are_ranked_by_what_they_cost_an_hour() -> None:
    day, minute = 24 * 3_600_000, 60_000
    groups = [GroupReport("r", "long", 0, day), GroupReport("r", "short", 0, minute), GroupReport("r", "high", 0, day)]
    rows = [finding("medium", 20.0, "a day"), finding("medium", 5.0, "a minute"), finding("high", 0.0, "for ever")]
    for group, row in zip(groups, rows, strict=True):
        group.findings = [row]
    assert [row["title"] for _, row in in_order(Report("title", groups))] == ["for ever", "a minute", "a day"]
    assert sorted(rows, key=order)[1]["title"] == "a day"


def test_a_cost_that_says_nothing_is_not_shown() -> None:
    assert cost_of(finding("medium", 0.005, "again and again")) == ""
    assert cost_of(finding("medium", 20.0, "once")) == "20 consumer-seconds"
