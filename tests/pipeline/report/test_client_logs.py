"""A report on nothing but the logs of consumers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rejoin.pipeline.reading.inputs import NoInput
from rejoin.pipeline.report.page.chart import chart_of
from rejoin.pipeline.report.run import make_report
from rejoin.pipeline.why.sources import open_source
from tests.paths import GOLDEN

LOGS = GOLDEN / "client-logs" / "python" / "kafka-python"


def test_consumers_logs_alone_name_who_left_and_why(tmp_path: Path) -> None:
    report = make_report([LOGS], tmp_path / "out")
    (group,) = report.groups
    assert group.group_id == "kafka-python"
    assert report.coverage[0].endswith("; the logs of 4 members")
    found = {row["finding"]: row for row in group.findings}
    assert found["max-poll-exceeded"]["members"] == ["kafka-python-1"]
    assert set(found["rolling-restart"]["members"]) >= {"kafka-python-1", "kafka-python-2", "kafka-python-3"}
    tables = tmp_path / "out" / "tables"
    pauses = pq.read_table(tables / "pauses").to_pylist()
    assert {row["client_id"] for row in pauses} == {f"kafka-python-{number}" for number in (1, 2, 3, 4)}
    assert all(row["how"] in ("revoked", "lost") and row["pause_ms"] >= 0 for row in pauses)
    assert {row["source"] for row in pq.read_table(tables / "events").to_pylist()} == {"client-log"}


def test_a_log_without_rebalances_and_without_times_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text("INFO:kafka.coordinator:(Re-)joining group orders\n")
    made = make_report([log], tmp_path / "out")
    assert (tmp_path / "out" / "report.html").exists()
    assert made.coverage == [
        "1 line: 1 used; the log of 1 member",
        "consumer.log: no times in the log: only the order of its lines is known",
    ]
    assert made.coverage[1] in (tmp_path / "out" / "report.html").read_text()


def test_a_page_on_a_log_without_times_names_lines(tmp_path: Path) -> None:
    made = make_report([GOLDEN / "public-logs" / "java-no-times.log"], tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    body = page[page.index("<main>") : page.index("</main>")]
    assert "from line 4 to line 8" in body
    assert not re.findall(r"\d:\d\d:\d\d|\d m?s\b|consumer-seconds|the longest", body)
    assert "rebalance, 1 completed" in body, "one is singular"
    assert chart_of(made.groups[0])["rebalances"][0][-1] == 1, "inferred"
    rows = re.search(r"out of order.*?</table>", body, re.DOTALL)
    assert rows is not None
    assert re.findall(r"<td[^>]*></td>", rows[0]), "rows of logs are put in order"
    assert not (tmp_path / "out" / "laboratory.html").exists()
    assert made.groups[0].stopped_ms == 0


def test_report_and_why_count_the_same_groups(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for log in (GOLDEN / "public-logs").glob("*.log"):
        shutil.copy(log, logs)
    made = make_report([logs], tmp_path / "out", most_groups=2)
    found = [group.group_id for group in made.groups] + [row["group_id"] for row in made.others]
    source = open_source(logs)
    assert sorted(found) == [each.group_id for each in source.groups()]
    assert "mails" in found
    status = source.story("mails").status
    assert (status.state, status.generation) == ("Stable", 88)


def test_a_log_of_no_known_layout_is_refused_with_its_first_line(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text("the group of orders joins again\n")
    with pytest.raises(NoInput, match=r"layout is not known: 'the group of orders.*known are .*log4j"):
        make_report([log], tmp_path / "out")
