"""The page's part about transactions: charts without a script, and what hangs in sight."""

from __future__ import annotations

import re
from typing import Any

from rejoin.pipeline.report.data import Report, TransactionsReport
from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.transactions import charts
from rejoin.pipeline.transactions.audits import violations_of
from tests.pipeline.transactions import lives
from tests.pipeline.transactions.lives import RUN
from tests.pipeline.transactions.test_transactions import UNVERIFIED, found, made


def page_of(tables: dict[str, list[dict[str, Any]]]) -> str:
    """The page of one run."""
    samples: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in tables["stable_offsets"]:
        samples.setdefault((row["topic"], row["partition"]), []).append(row)
    spans: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in tables["transactions"]:
        for log in row["logs"]:
            spans.setdefault((log["topic"], log["partition"]), []).append({**row, **log})
    begin = min(row["first_at_ms"] for row in tables["producers"])
    violations = list(violations_of(tables["transactions"]))
    report = TransactionsReport(RUN, begin, begin + 700_000, tables["producers"], found(tables), violations)
    report.logs = charts(report, samples, spans)
    return render(Report("t", transactions=[report]))


def test_the_last_stable_offset_is_drawn_against_the_end_of_its_log() -> None:
    page = page_of(made(lives.late_batch, **UNVERIFIED))
    assert 'aria-label="t-0: last stable offset 2 of 3, held for up to 12 min"' in page
    (stable,) = re.findall(r'<polyline class="stable" points="([^"]*)"', page)
    heights = [float(point.split(",")[1]) for point in stable.split()]
    # It rises with the first transaction's marker, and stands from then on.
    assert heights[-1] == heights[-2] < heights[0]
    assert re.findall(r'<rect class="t-(\w+)"', page) == ["hanging", "committed"]
    assert "<title>payments-1: hanging, from offset 2, " in page
    assert "A transaction hangs on t-0" in page
    assert "a transaction is open in a log, and its coordinator does not know of it" in page


def test_names_are_escaped() -> None:
    tables = made(lives.healthy)
    tables["producers"][0]["transactional_id"] = "<script>a"
    assert "<script>a" not in page_of(tables)
