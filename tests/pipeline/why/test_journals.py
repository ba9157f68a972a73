"""``rejoin why`` on journals: what it reads, what it leaves out, and how its costs compare with those of a report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rejoin.pipeline.commands.parser import why
from rejoin.simulation.run import play
from tests.journal.few_records import of_the_gallery
from tests.pipeline.gallery import found_in
from tests.pipeline.simulated import lines_of


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("why") / "flapping.jsonl"
    play(of_the_gallery("flapping_consumer"), journal=path)
    return path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_journal_costs_what_its_report_says(gallery_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = gallery_report / "journals" / "flapping_consumer.jsonl"
    assert why("orders-app", journal, json=True) == 0
    scores = {row["finding"]: row["score"] for row in json.loads(capsys.readouterr().out)["findings"]}
    reported = found_in(gallery_report)["flapping_consumer", "orders-app"]
    assert scores == {name: row["score"] for name, row in reported.items()}
    assert why("orders-app", journal) == 0
    assert "consumer-seconds" in (text := said(capsys))
    assert "up to" not in text


def test_costs_without_the_consumers_rows_are_named_as_upper_bounds(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.dumps(row, separators=(",", ":")) for row in lines_of(journal) if row["node"].startswith("node")]
    (tmp_path / "coordinator.jsonl").write_text("\n".join(rows) + "\n")
    assert why("orders-app", tmp_path / "coordinator.jsonl") == 0
    text = said(capsys)
    assert "rebalances, up to " in text
    assert "consumer-seconds are an upper bound: no consumer reported its pauses" in text


def test_a_segment_that_is_missing_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(of_the_gallery("flapping_consumer"), journal=tmp_path / "whole")
    (segment, *_) = sorted((tmp_path / "whole").glob("simulation-node-1-*.jsonl"))
    lines = segment.read_text().splitlines(keepends=True)
    assert why("orders-app", tmp_path / "whole") == 0
    assert "was expected" not in said(capsys)
    segment.write_text("".join([*lines[:10], *lines[13:]]))
    assert why("orders-app", tmp_path / "whole") == 0
    assert f"row 14 where row 11 was expected in {segment.name}; rejoin report counts" in said(capsys)


def test_a_folder_of_journals_is_read_as_a_report_reads_it(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why("orders-app", journal) == 0
    alone = said(capsys)
    shutil.copy(journal, tmp_path / "first.jsonl")
    shutil.copy(journal, tmp_path / "copy.jsonl")
    assert why("orders-app", tmp_path) == 0
    assert said(capsys) == alone


def test_a_journal_with_rubbish_at_its_end_is_read_up_to_there(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_bytes(journal.read_bytes() + b"\x9c\xff\x00rubbish")
    number = journal.read_bytes().count(b"\n") + 1
    assert why("orders-app", mixed) == 0
    text = said(capsys)
    assert "orders-app-3 left and came back 10 times" in text
    assert f"1 line could not be read, the first is line {number:d} of mixed.jsonl (not UTF-8: byte 0x9c at 1)" in text


def test_a_log_that_names_no_group_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-03 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    for path in (log, tmp_path):
        assert why("orders-app", path) == 2
        assert f"{path}: nothing about consumer groups in there (1 line: 1 used)" in capsys.readouterr().err


def test_an_instant_outside_of_what_was_recorded(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-app", journal, at="5:00") == 0
    assert "5:00:00 is outside of what was recorded, from 0:00:00 to 0:15:00" in said(capsys)
    assert why("orders-app", journal, at="0:14") == 0
    assert "recorded" not in said(capsys)


@pytest.mark.parametrize("at", ["99:99", "0:99", "24:00", "0:00:60"])
def test_a_time_of_day_that_there_is_not(journal: Path, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why("orders-app", journal, at=at) == 2
    assert f"--at {at}: no time of day; expected hours up to 23" in capsys.readouterr().err
