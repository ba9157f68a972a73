"""``python -m pipeline report``: what it says, and how it ends, when there is nothing to report on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from pipeline.inputs import NoInput
from pipeline.report.data import GroupReport, Intervals, Report, varints
from pipeline.report.page import render
from pipeline.report.run import make_report
from pipeline.report_command import report


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([tmp_path / "nowhere"], out=tmp_path / "out") == 2
    assert "nowhere: no such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_empty_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([tmp_path], out=tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert "no files there" in said
    assert len(said.splitlines()) == 1


def test_a_zone_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([tmp_path], out=tmp_path / "out", timezone="Europe/Nowhere") == 2
    assert "Europe/Nowhere: there is no such zone" in capsys.readouterr().err


def test_its_own_tables_are_no_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "old.jsonl").write_text("{}\n")
    assert report([tmp_path], out=tmp_path) == 2
    assert "choose another --out" in capsys.readouterr().err


def test_a_log_that_says_nothing_about_groups(tmp_path: Path, spark: SparkSession) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-03 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    with pytest.raises(NoInput, match="nothing about consumer groups"):
        make_report(spark, [log], tmp_path / "out")


def test_as_a_program(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pipeline", "report", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_report_without_groups_is_a_page_that_says_so() -> None:
    page = render(Report("Title with <b> & more"))
    assert "No group in the input." in page
    assert "<h1>Title with &lt;b&gt; &amp; more</h1>" in page


def test_nothing_in_names_can_end_the_script_or_fill_in_the_template() -> None:
    bad = "</script><script>alert(1)</script>@@DATA@@"
    page = render(Report(bad, [GroupReport("run", bad, 0, 10, owners=[bad], places=[(bad, 0)])]))
    assert page.count("</script>") == render(Report("", [])).count("</script>")
    assert page.count("<script>alert") == 0


def test_touching_turns_of_one_owner_are_one_interval() -> None:
    held = Intervals.of([(0, 1, 0, 10), (0, 1, 10, 20), (0, 2, 20, 30), (1, 1, 0, 5), (0, 1, 31, 40)])
    merged = held.merged(0)
    assert list(zip(*(c.tolist() for c in (merged.row, merged.owner, merged.start, merged.end)), strict=True)) == [
        (0, 1, 0, 20),
        (0, 2, 20, 30),
        (0, 1, 31, 40),
        (1, 1, 0, 5),
    ]


def test_a_gap_is_closed_only_between_turns_of_the_same_owner() -> None:
    held = Intervals.of([(0, 1, 0, 10), (0, 1, 15, 20), (0, 2, 22, 30)])
    assert len(held.merged(4)) == 3
    assert len(held.merged(5)) == 2
    few, closed = Intervals.of([(0, 1, 100 * n, 100 * n + 99) for n in range(1_000)]).reduced(most=10)
    assert len(few) == 1
    assert closed >= 1


def test_numbers_are_leb128() -> None:
    assert varints(np.array([0, 1, 127, 128, 300, 2**40])) == bytes(
        [0, 1, 127, 0x80, 1, 0xAC, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]
    )
    assert varints(np.array([], dtype=np.int64)) == b""
