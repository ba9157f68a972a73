"""``rejoin report``: what it says, and how it ends, when there is nothing to report on."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rejoin.__main__ import main
from rejoin.pipeline.commands import report as report_command
from rejoin.pipeline.commands.options import BadOption, check_master
from rejoin.pipeline.commands.parser import report, sweep, watch
from rejoin.pipeline.reading.inputs import NoInput
from rejoin.pipeline.report.console import show
from rejoin.pipeline.report.data import GroupReport, Intervals, Report, varints
from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.run import make_report
from tests.pipeline.sweep.sweeps import GRID


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


def test_its_own_tables_are_no_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "old.jsonl").write_text("{}\n")
    assert report([tmp_path], out=tmp_path) == 2
    assert "choose another --out" in capsys.readouterr().err


def test_the_input_is_no_place_for_a_report(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = journal.parent
    assert report([folder], out=folder) == 2
    assert f"--out {folder}: is an input of this report" in one_line(capsys.readouterr().err)
    assert [each.name for each in folder.iterdir()] == [journal.name]
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert "Directory for report.html and tables/. An earlier report there is replaced. It must not be" in shown


def test_tables_that_no_report_writes_are_not_left_beside_new_ones(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = journal.parent.parent / "out"
    (out / "tables" / "sales").mkdir(parents=True)
    assert report([journal], out=out) == 2
    assert "holds sales, which no report writes; give another folder" in one_line(capsys.readouterr().err)
    (out / "tables" / "sales").rmdir()
    (out / "stream.json").write_text("{}")
    assert report([journal], out=out) == 2
    assert "belongs to a rejoin watch, which keeps stream.json there" in one_line(capsys.readouterr().err)


def test_other_files_beside_a_report_stay_and_are_named(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = journal.parent.parent / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    report([journal], out=out)
    assert f"--out {out}: other files are there too and stay as they are: notes.txt" in capsys.readouterr().err
    assert (out / "notes.txt").read_text() == "mine"


def one_line(printed: str) -> str:
    assert printed.count("\n") == 1, printed
    assert "Traceback" not in printed
    return printed


JOURNAL = (
    '{"schema_version":1,"run_id":"r","source":"coordinator","node":"n1","seq":1,"at_ms":10,'
    '"event":"partition_elected","partition":3,"epoch":1}\n'
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "journal.jsonl"
    path.parent.mkdir()
    path.write_text(JOURNAL)
    return path


@pytest.mark.parametrize("below", ["", "deeper", "deeper/still"])
def test_a_file_is_no_folder_to_write_into(journal: Path, below: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = journal.parent.parent / "file"
    file.write_text("something")
    assert report([journal], out=file / below) == 2
    assert f"{file} is not a folder" in one_line(capsys.readouterr().err)
    grid = journal.parent / "grid.yaml"
    grid.write_text(GRID)
    assert sweep(grid, out=file / below) == 2
    assert f"{file} is not a folder" in one_line(capsys.readouterr().err)
    assert watch(journal=(journal.parent,), out=file / below, once=True) == 2
    assert f"{file} is not a folder" in one_line(capsys.readouterr().err)
    assert file.read_text() == "something"


def test_where_a_report_cannot_put_its_page_or_its_tables(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = journal.parent.parent / "out"
    (out / "report.html").mkdir(parents=True)
    assert report([journal], out=out) == 2
    assert "report.html is a folder" in one_line(capsys.readouterr().err)
    (out / "report.html").rmdir()
    (out / "tables").write_text("")
    assert report([journal], out=out) == 2
    assert "tables is not a folder" in one_line(capsys.readouterr().err)


def test_what_cannot_be_written_is_reported(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The user who runs the tests may be root, but not even root can make files there.
    assert report([journal], out=Path("/proc/new")) == 2
    assert "cannot be written" in one_line(capsys.readouterr().err)


def test_a_failure_while_writing_is_one_line(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As when the disk is full in the middle: what was checked at the beginning does not hold any more.
    monkeypatch.setattr(report_command, "check_out", lambda *_, **__: None)
    journal.write_text(JOURNAL.replace("epoch", "group"))
    file = journal.parent.parent / "file"
    file.write_text("")
    assert report([journal], out=file) == 2
    assert one_line(capsys.readouterr().err).startswith(f"rejoin: --out {file}: the report could not be written: ")


def test_numbers_that_mean_nothing_are_refused(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = journal.parent.parent / "out"
    for number in (-1, 0):
        assert report([journal], out=out, groups=number) == 2
        assert one_line(capsys.readouterr().err) == f"rejoin: --groups {number}: expected 1 or more\n"
        assert sweep(journal.parent / "grid.yaml", out=out, top=number) == 2
        assert one_line(capsys.readouterr().err) == f"rejoin: --top {number}: expected 1 or more\n"
    assert not out.exists()


@pytest.mark.parametrize("seeds", ["x", "1:x", ":5", "5:5", "0", "-3"])
def test_wrong_seeds_are_the_option_s_fault(journal: Path, seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    grid = journal.parent / "grid.yaml"
    grid.write_text(GRID)
    assert sweep(grid, out=journal.parent.parent / "out", seeds=seeds) == 2
    printed = one_line(capsys.readouterr().err)
    assert printed.startswith(f"rejoin: --seeds {seeds}: ")
    assert "grid.yaml" not in printed


@pytest.mark.parametrize("master", ["nonsense", "local[x]", "spark:/host:7077", "spark://host", "local-cluster[2]"])
def test_a_master_that_there_is_not(journal: Path, master: str, capsys: pytest.CaptureFixture[str]) -> None:
    grid = journal.parent / "grid.yaml"
    grid.write_text(GRID)
    out = journal.parent.parent / "out"
    commands: list[Callable[..., int]] = [
        partial(report, [journal]),
        partial(sweep, grid),
        partial(watch, journal=(journal.parent,), once=True),
    ]
    for command in commands:
        assert command(out=out, master=master) == 2
        printed = one_line(capsys.readouterr().err)
        assert printed.startswith(f"rejoin: --master {master}: no such master; expected local[N]")
    assert not out.exists()


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:1", "spark://a:1,b:2"],
)
def test_masters_that_there_are(master: str) -> None:
    check_master(master)


def test_the_environment_s_master_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SPARK_MASTER", "nonsense")
    with pytest.raises(BadOption, match="REJOIN_SPARK_MASTER nonsense"):
        check_master(None)


def test_findings_of_groups_without_a_chart_are_not_nothing() -> None:
    others = [{"run_id": "r", "group_id": "g", "rebalances": 7, "worst": "a storm"}]
    said = io.StringIO()
    show(Report("t", [GroupReport("r", "h", 0, 1)], others), Console(file=said, width=200), page=None, tables=None)
    assert "7 rebalances" in said.getvalue()
    assert "No findings" not in said.getvalue()
    assert "findings in 1 more group" in said.getvalue()


def test_a_log_that_says_nothing_about_groups(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-03 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    with pytest.raises(NoInput, match="nothing about consumer groups"):
        make_report([log], tmp_path / "out")


def test_as_a_program(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "rejoin", "report", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")],
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
    page = render(Report(bad, [GroupReport("run", bad, 0, 10, owners=[bad], partitions=[(bad, 0, 0)])]))
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
