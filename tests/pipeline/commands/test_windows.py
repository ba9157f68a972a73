"""``--since`` and ``--until``: a log that is cut by them is read as one that was cut before."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.commands.parser import report, why
from rejoin.pipeline.instants import BadWindow, LogWindow
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report import on_spark
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem
from tests.paths import ROOT

PUBLIC: Final = ROOT / "tests" / "golden" / "public-logs"
LATE: Final = PUBLIC / "java-late-and-back.log"
UNTIMED: Final = PUBLIC / "java-no-times.log"
LINES: Final = LATE.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("count", range(1, len(LINES)))
def test_a_window_says_what_the_cut_log_says(count: int, tmp_path: Path) -> None:
    for lines, window in (
        (LINES[:count], LogWindow(until=LINES[count - 1][:23])),
        (LINES[count:], LogWindow(since=LINES[count][:23])),
    ):
        (tmp_path / "cut.log").write_text("".join(lines))
        try:
            expected = open_source(tmp_path / "cut.log").story("bills")
        except SourceProblem:
            with pytest.raises((SourceProblem, BadWindow)):
                open_source(LATE, window=window).story("bills")
            continue
        found = open_source(LATE, window=window).story("bills")
        assert [row["text"] for row in found.findings] == [row["text"] for row in expected.findings]
        assert [row["cause"] for row in found.rebalances] == [row["cause"] for row in expected.rebalances]
        assert any("only lines" in note for note in found.read)


@pytest.mark.parametrize(
    ("since", "until", "bounds"),
    [
        ("30m", None, (1741505000_000 - 1_800_000, None)),
        ("07:05", "07:20:30", (1741503900_000, 1741504830_000)),
        (None, "2025-03-09T07:05:00+01:00", (None, 1741500300_000)),
    ],
)
def test_bounds_are_instants_times_of_day_or_lengths_before_the_end(
    since: str | None, until: str | None, bounds: tuple[int | None, int | None]
) -> None:
    assert LogWindow(since, until).bounds(1741505000_000) == bounds


@pytest.mark.parametrize(
    ("arguments", "window", "says"),
    [
        ((LATE,), {"since": "soon"}, "--since soon: no instant; expected 2026-03-01T14:02:00Z"),
        (
            (LATE,),
            {"until": "2020-01-01"},
            "nothing is said about groups then, but on 9 March from",
        ),
        ((LATE,), {"since": "07:06", "until": "07:05"}, "ends before it begins"),
        ((UNTIMED,), {"since": "1h"}, "java-no-times.log has no times; give it without --since and --until"),
        ((ROOT / "tests/golden/journals/simulation",), {"since": "1h"}, "only logs can be cut"),
    ],
)
def test_a_window_that_cannot_be_is_refused(
    arguments: tuple[Path, ...],
    window: dict[str, Any],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert why("bills", *arguments, **window) == 2
    assert says in capsys.readouterr().err
    assert report(list(arguments), out=tmp_path / "out", **window) == 2
    assert says in capsys.readouterr().err


def test_files_without_times_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([LATE, UNTIMED], out=tmp_path / "out", since="1h") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--since 1h: only lines on 9 March from" in said
    assert "java-no-times.log: no times, so left out of the window" in said


def test_much_data_is_cut_as_little_is(spark: SparkSession) -> None:
    coverage, files, window = Coverage(), find([LATE, UNTIMED]), LogWindow(since="07:06")
    much = on_spark.read_events(spark, files, "UTC", coverage, window).events.toArrow().to_pylist()
    here = read_events(files, "UTC", Coverage(), window).events.to_pylist()
    assert sorted((row["at_ms"], row["event"]) for row in much) == sorted((row["at_ms"], row["event"]) for row in here)
    assert coverage.notes
    assert here
