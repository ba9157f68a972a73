"""The report over the gallery's journals: what is on disk and on the page."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pypdf import PdfReader
from rich.console import Console

from rejoin.pipeline.findings.formatting import seconds
from rejoin.pipeline.report.collect import fill_members
from rejoin.pipeline.report.console import show
from rejoin.pipeline.report.data import GroupReport, Intervals, Report
from rejoin.pipeline.report.page import client_metrics, render
from rejoin.pipeline.report.shown import ShownGroups
from rejoin.pipeline.schemas import TABLES
from tests.simulation.web.browser import CHROMIUM, browser


@pytest.fixture(scope="module")
def page(gallery_report: Path) -> str:
    return (gallery_report / "out" / "report.html").read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_every_finding_of_a_group_leads_to_its_instant(gallery_report: Path, page: str) -> None:
    places = re.findall(r'href="laboratory\.html#at=(\d+)&amp;group=([^"]+)"', page)
    recorded = (gallery_report / "out" / "laboratory.html").read_text(encoding="utf-8")
    found = re.search(r'id="recorded">(.*?)</script>', recorded, re.DOTALL)
    assert found is not None
    groups = json.loads(found[1])["groups"]
    assert {unquote(name) for _, name in places} == groups.keys()
    assert all(int(at) <= groups[unquote(name)]["until"] for at, name in places)
    assert len(places) == page.count("data-show=") + len(groups)


class Nesting(HTMLParser):
    """What is open, what is closed out of turn, and which details lie in which."""

    VOID = ("meta", "br", "hr", "img", "input", "link")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.summaries: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if "summary" in self.open and tag not in ("code", "span", "b"):
            self.wrong.append(f"{tag} in a summary, {self.getpos()}")
        if tag == "summary":
            self.summaries.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag} out of turn, {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if "summary" in self.open:
            self.summaries[-1] += data


def test_tags_nest_and_close() -> None:
    started = {"prepared_at_ms": 5, "ended_at_ms": 9, "cause": "leave", "outcome": "completed"}
    finding = {"finding": "f", "severity": "low", "title": "t <b>", "text": "x", "score": 0.0, "from_ms": 1, "to_ms": 2}
    finding |= {
        "confidence": "exact",
        "advice": "a",
        "setting": "s",
        "evidence": [{"event": "e", "source": "s", "node": "n", "seq": 1}],
    }
    pause = {"owner": "o", "pauses": 1, "stopped_ms": 4, "longest_ms": 4, "incremental": 0}
    request = {"api": "JoinGroup", "requests": 2, "failed": 1}
    violation = {"at_ms": 5, "kind": "two-owners", "topic": "t", "partition": 1, "text": "x"}
    group = GroupReport(
        "r", "g", 0, 100, [started] * 13, [finding] * 14, [violation] * 60, pauses=[pause], requests=[request]
    )
    bare = GroupReport("r", "h", 0, 100, closed_ms=10)
    other = {"run_id": "r", "group_id": "o", "rebalances": 3}
    broken = {"file": "/a/b.jsonl", "line": 3, "reason": "why", "text": "<p>"}
    stream = {"source": "s", "node": "n", "run_id": "r", "rows": 3, "missing": 0, "out_of_order": 0, "clock_steps": 0}
    page = render(
        Report("title", [group, bare], [other], [stream], quarantine_kinds=[("field", 2)], quarantine=[broken])
    )
    found = Nesting(page)
    assert found.wrong == []
    assert found.open == []
    summaries = {
        "13 rebalances, one by one",
        "Pauses by consumer",
        "Requests",
        "1 row of evidence",
        "1 more group without a chart (--group shows one)",
    }
    findings = [summary for summary in found.summaries if summary not in summaries]
    assert set(found.summaries) - set(findings) == summaries
    assert findings == ["low t <b> "] * 14


def test_an_overlap_after_a_removal_is_no_violation_and_names_the_finding_behind_it() -> None:
    overlap = {"at_ms": 5_000, "kind": "owner-after-removal", "topic": "t", "partition": 1, "text": "a went on"}
    paused = {"finding": "session-too-short", "severity": "low", "title": "a missed the session", "text": "x"}
    other = {"finding": "storm", "severity": "low", "title": "a storm", "text": "x"}
    findings = [{**row, "score": 0.0, "from_ms": 1_000, "to_ms": 9_000} for row in (paused, other)]
    report = Report("t", [GroupReport("r", "g", 0, 60_000, findings=findings, after_removal=[overlap])])
    page = render(report)
    assert re.search(r"0</[a-z]+><[a-z]+[^>]*>violations", page), "it is counted apart"
    assert "1 overlap after a removal" in page
    assert "a went on" in page
    assert "Why it was removed: see &quot;a missed the session&quot;." in page
    printed = Console(file=StringIO(), width=200)
    show(report, printed, page=None, tables=None)
    text = cast(StringIO, printed.file).getvalue()
    assert "1 time a partition had two owners, as in Kafka, until a removed member noticed" in text
    assert "never happen" not in text


def test_what_is_counted_and_in_which_zone_is_said() -> None:
    finding = {"finding": "f", "severity": "low", "title": "t", "text": "x", "score": 6.0}
    began = 1_772_496_000_000
    rebalance = {"prepared_at_ms": began, "ended_at_ms": began + 9, "cause": "leave", "outcome": "completed"}
    of_a_day = render(Report("t", [GroupReport("r", "g", began, began + 60_000, [rebalance], [finding])]))
    assert "consumer-seconds stopped in rebalances" in of_a_day
    assert "cost 6 consumer-seconds" in of_a_day
    assert "the time until the coordinator noticed" in of_a_day
    assert "all times are in UTC" in of_a_day
    simulated = render(Report("t", [GroupReport("r", "g", 0, 60_000)]))
    assert "UTC" not in simulated.split("<script")[0]
    assert "the time until the coordinator noticed" not in simulated
    assert '"lag at commits"' in simulated


def test_tags_of_the_gallery_s_page_nest_and_close(page: str) -> None:
    found = Nesting(page)
    assert found.wrong == []
    assert found.open == []


def test_tables_lie_by_day_and_group(gallery_report: Path) -> None:
    tables = gallery_report / "out" / "tables"
    written = {folder.name for folder in tables.iterdir()}
    assert written == {*TABLES, "events", "quarantine"} - {"sweep_runs"}
    assert (tables / "rebalances" / "day=1970-01-01" / "group_id=orders-app").is_dir()


def test_every_line_that_could_not_be_read_is_listed(gallery_report: Path, page: str) -> None:
    rows = pq.read_table(gallery_report / "out" / "tables" / "quarantine").to_pylist()
    assert [(Path(row["file"]).name, row["line"]) for row in sorted(rows, key=lambda row: row["line"])] == [
        ("topic_growth.jsonl", 6),
        ("topic_growth.jsonl", 7),
    ]
    assert "2 lines in quarantine" in page
    assert "topic_growth.jsonl</span>:6" in page
    assert "no JSON at all" in page


def test_the_page_needs_nothing_else(page: str) -> None:
    assert not re.search(r"""(src|href)=["']?(https?:|//)|@import|url\(|fetch\(|XMLHttpRequest""", page)
    assert "@@" not in re.sub(r"<script type=.*?</script>", "", page, count=1, flags=re.DOTALL)


def test_groups_come_first_each_with_its_findings_in_a_line_that_opens(page: str) -> None:
    places = [page.index(each) for each in ("<h2>Groups, worst first", 'class="chart"', "<details class=", "<h2>Input")]
    assert places == sorted(places)
    sections = page.split('<section class="card group"')[1:]
    found = [re.findall(r'<details class="finding (\w+)"(?: open)?><summary>', section) for section in sections]
    for severities in found:
        assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert found[0][0] == "high"
    worst = [severities[0] if severities else "none" for severities in found]
    assert worst == sorted(worst, key=["high", "medium", "low", "none"].index)


def test_a_stop_of_milliseconds_is_not_nothing() -> None:
    assert [seconds(ms) for ms in (0, 4, 20, 70, 400, 36_000)] == ["0", "0.004", "0.02", "0.1", "0.4", "36"]
    pause = {"owner": "o", "pauses": 1, "stopped_ms": 20, "longest_ms": 20, "incremental": 0}
    page = render(Report("t", [GroupReport("r", "g", 0, 60_000, pauses=[pause])]))
    assert "<b>0.02</b>" in page
    assert '<b>0</b><span class="soft">consumer-seconds' not in page


def test_where_owners_are_not_known_each_member_has_a_lane() -> None:
    rows = [
        ("r", "g", "i-1-x", "i-1", "c", 10, 40, "replaced"),
        ("r", "g", "i-1-y", "i-1", "c", 45, None, "open"),
        ("r", "g", "c-a", None, "c", 20, 90, "left"),
        ("r", "g", "c-b", None, "c", 30, 80, "session-expiry"),
        ("r", "g", "old", None, "d", None, 50, "left"),
        ("r", "h", "other", None, "e", 1, 2, "left"),
    ]
    names = ("run_id", "group_id", "member_id", "group_instance_id", "client_id", "joined_at_ms", "ended_at_ms", "end")
    sessions = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    group = GroupReport("r", "g", 5, 100)
    known = GroupReport("r", "h", 0, 100, partitions=[("t", 0, 0)])
    keys = {("r", "g"): (5, 100), ("r", "h"): (0, 100)}
    tables = {"member_sessions": ds.dataset(sessions)}
    fill_members({("r", "g"): group, ("r", "h"): known}, ShownGroups(keys), tables)
    # Two members with one client.id at a time are two lanes, with their member ids.
    assert group.members == ["d", "i-1", "c-a", "c-b"]
    assert group.sessions == [
        (0, 5, 50, "left"),
        (1, 10, 40, "replaced"),
        (2, 20, 90, "left"),
        (3, 30, 80, "session-expiry"),
        (1, 45, 100, "open"),
    ]
    assert not known.members
    page = render(Report("t", [group]))
    assert data_of(page)["groups"][0]["members"] == ["d", "i-1", "c-a", "c-b"]
    assert "the lanes are members" in page


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@needs_browser
def test_every_chart_is_drawn_below_the_window_and_on_paper(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    finding = {"finding": "f", "severity": "low", "title": "t", "text": "x", "advice": "wait longer", "score": 0.0}
    groups = [
        GroupReport("r", f"app-{number}", 0, 100, findings=[finding], members=["m"], sessions=[(0, 5, 50, "left")])
        for number in range(9)
    ]
    (tmp_path / "page.html").write_text(render(Report("t", groups)))
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=800,300", "--virtual-time-budget=5000")
    done = subprocess.run(
        [
            CHROMIUM,
            *options,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            f"--print-to-pdf={tmp_path / 'page.pdf'}",
            (tmp_path / "page.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert len(re.findall(r'<canvas tabindex="0"[^>]*style="height: \d+px;?"', done.stdout)) == len(groups)
    charts, text = printed(tmp_path / "page.pdf")
    assert len(charts) == len(groups)
    assert all(len(set(pixels)) > 2 for pixels in charts), "a chart has more than its background"
    assert [group.group_id for group in groups if f"{group.group_id} r at" not in text] == []
    assert text.count("wait longer") == len(groups), "findings are open on paper"


def printed(file: Path) -> tuple[list[bytes], str]:
    """The pixels of all pictures of a PDF, and its text."""
    pages = PdfReader(file).pages
    objects = [cast(dict[str, Any], page["/Resources"]).get("/XObject", {}).values() for page in pages]
    pictures = [found.get_data() for each in chain(*objects) if (found := each.get_object())["/Subtype"] == "/Image"]
    return pictures, "\n".join(page.extract_text() for page in pages)


@needs_browser
async def test_a_new_partition_is_hatched_since_it_is_expected_to_have_an_owner(tmp_path: Path) -> None:
    held = Intervals.of([(0, 0, 200, 1_000), (1, 0, 800, 1_000)])
    group = GroupReport("r", "g", 0, 1_000, partitions=[("t", 0, 0), ("t", 1, 600)], owners=["a"], owned=held)
    (tmp_path / "page.html").write_text(render(Report("t", [group])))
    async with browser(tmp_path) as page:
        await page.open((tmp_path / "page.html").as_uri())
        await page.wait_for("typeof charts === 'object' && charts.size")
        pixels = """(at, row) => {
          const chart = charts.get(0), {panels: [, owners]} = chart;
          const box = [chart.x(at), owners.y + (row + .2) * chart.rowHeight, 12, 12].map(px => px * chart.ratio);
          return new Set(new Uint32Array(chart.c.getImageData(...box).data.buffer)).size;
        }"""
        tip = "(at, row) => charts.get(0).explain(charts.get(0).x(at), charts.get(0).panels[1].y + row * 20 + 9)"
        hatched = {(row, at): await page.evaluate(f"({pixels})({at}, {row}) > 1") for row in (0, 1) for at in (50, 650)}
        assert hatched == {(0, 50): True, (0, 650): False, (1, 50): False, (1, 650): True}
        assert "t-1: expected to have an owner from 0:00:00.600 on" in await page.evaluate(f"({tip})(300, 1)")
        assert "t-1: no owner for 200 ms" in await page.evaluate(f"({tip})(700, 1)")
        assert "t-0: no owner for 200 ms" in await page.evaluate(f"({tip})(100, 0)")


def test_each_group_has_its_chart(gallery_report: Path, page: str) -> None:
    groups = {(group["name"], len(group["rebalances"])) for group in data_of(page)["groups"]}
    rebalances = pq.read_table(gallery_report / "out" / "tables" / "rebalances", columns=["run_id", "group_id"])
    counts: dict[tuple[str, str], int] = {}
    for run, group in zip(*(rebalances[name].to_pylist() for name in ("run_id", "group_id")), strict=True):
        counts[run, group] = counts.get((run, group), 0) + 1
    counted = {(group, number) for (_, group), number in counts.items()}
    # A share group has a chart, and no rebalances.
    assert {(group, number) for group, number in groups if number} == counted
    without = [group for group in data_of(page)["groups"] if not group["rebalances"]]
    assert page.count("data-group=") == len(counts) + len(without)


def test_a_chart_knows_owners_lag_balance_and_stops(page: str) -> None:
    groups = data_of(page)["groups"]
    eager = next(group for group in groups if len(group["rebalances"]) == 5 and len(group["partitions"]) == 24)
    assert eager["owners"] == [f"orders-app-{number}" for number in range(1, 9)]
    assert eager["short"] == [str(number) for number in range(1, 9)]
    assert eager["lag"]
    assert eager["balance"][-1][2:4] == [3, 3]
    assert max(waiting for _, waiting, _ in eager["stops"]) >= 4
    assert eager["stops"][-1][1:] == [0, 0]


def test_a_chart_knows_since_when_each_partition_is_expected_to_have_an_owner(page: str) -> None:
    since = [[at_ms for _, _, at_ms in group["partitions"]] for group in data_of(page)["groups"]]
    grown = next(each for each in since if each[6:] == [420_000] * 6)
    assert max(grown[:6]) < 1_000


def test_metrics_of_clients_are_beside_the_view_of_the_coordinator() -> None:
    row: dict[str, Any] = dict.fromkeys(TABLES["client_metrics"].names)
    row |= {"client_instance_id": "<ia>", "member_id": "a-1", "client_id": "a", "at_ms": 5_000, "fetch_rate": 1.5}
    row |= {"poll_interval_max_ms": 340_000, "rebalance_timeout_ms": 300_000, "assigned_partitions": 2}
    later = row | {"at_ms": 9_000, "owned_partitions": 3, "rebalances": 1, "rebalance_max_ms": 3_020}
    text = "".join(client_metrics.section([row, later]))
    assert "Metrics of 1 client, as clients measured them" in text
    assert '<b class="high">5.7 min</b>' in text, "longer than its limit"
    assert "&lt;ia&gt;" in text
    assert text.count('<b class="medium">2</b>') == 2, "marked for the client, and in the report that differs"
    assert text.count("<tr>") == 2 + 1 + 2
