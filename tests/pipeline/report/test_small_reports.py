"""A report on little data keeps its tables in this process; what it writes is what Spark's tasks write."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.simulation import RecordsCompared
from rejoin.pipeline.columns import LONG, STRING, column, table
from rejoin.pipeline.commands.interrupts import Interrupts
from rejoin.pipeline.commands.parser import report
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.report import on_spark
from rejoin.pipeline.report.parquet_tables import as_read, columns_of_spark, stored, write_rows
from rejoin.pipeline.report.run import is_small, make_report
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, TABLES
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests import paths
from tests.pipeline.share_groups import lives as share_lives
from tests.pipeline.streams_groups import lives as streams_lives
from tests.pipeline.tables.test_tables import events_of_scenes
from tests.pipeline.transactions import lives
from tests.pipeline.transactions.lives import lines_of

CRASH = """
topics:
  orders: {partitions: 4, records_per_second: 0.2}
groups:
  orders-app: {topics: orders, consumers: 3, assignor: range, commit: after, session_timeout: 10s}
horizon: 70s
events:
  - {at: 30s, crash: {who: orders-app-1}}
"""


COMPARED = RecordsCompared(
    reader="ledger",
    isolation_level="read_committed",
    topics=["results"],
    transform_groups=["pay"],
    commit_modes=["before"],
    records_in=640,
    records_read=554,
    records_twice=0,
    records_lost=86,
    records_out_of_order=0,
    records_aborted=0,
    records_unread=0,
    records_to_come=0,
)


def rows_of(tables: Path) -> dict[str, list[str]]:
    return {
        folder.name: sorted(str(row) for row in pq.read_table(folder).to_pylist())
        for folder in sorted(tables.iterdir())
    }


def test_small_and_large_reports_have_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    play(scenario_from(CRASH), 1, journal=tmp_path / "run.jsonl", run_id="run")
    with (tmp_path / "run.jsonl").open("a") as journal:
        journal.write("not a row\n")
    (tmp_path / "producers.jsonl").write_text(lines_of(lives.too_slow))
    (tmp_path / "shares.jsonl").write_text(share_lives.lines_of(share_lives.slow_handler).replace('"run"', '"shares"'))
    (tmp_path / "tasks.jsonl").write_text(streams_lives.all_tables().replace('"run"', '"tasks"'))
    compared = RowEncoder("compared", "simulation", "outside").encode(1, 70_000, COMPARED)
    (tmp_path / "readers.jsonl").write_bytes(compared + b"\n")
    pq.write_table(events_of_scenes(), tmp_path / "scenes.parquet")
    inputs = [
        tmp_path / name
        for name in (
            *("run.jsonl", "producers.jsonl", "readers.jsonl", "shares.jsonl", "tasks.jsonl", "scenes.parquet"),
        )
    ]
    small = make_report(inputs, tmp_path / "small")
    large = make_report(inputs, tmp_path / "large", spark=spark)
    assert [each.findings for each in small.parts] == [each.findings for each in large.parts]
    assert small.groups[0].findings
    assert small.groups[0].partitions == large.groups[0].partitions
    assert [row["finding"] for row in small.transactions[0].findings] == ["transaction-timed-out"]
    assert small.quarantine_kinds == large.quarantine_kinds == [("not-json", 1)]
    found = rows_of(tmp_path / "small" / "tables")
    assert found == rows_of(tmp_path / "large" / "tables")
    assert sum("output-lost" in row for row in found["findings"]) == 1
    assert sum("record-locks-expired" in row for row in found["findings"]) == 1
    assert sum("streams-standby-never-ready" in row for row in found["findings"]) == 1
    assert {name for name, rows in found.items() if not rows} <= {"requests", "violations", "progress", "records"}


def test_names_of_groups_and_columns_survive_in_the_names_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    schema = table(column("group_id", STRING, "The group."), column("rows", LONG, "How many."))
    names = ["a", "a", "", None, "b/c=d %", "grüße {x}", "..", "a:b*c?'\"#\\[]^"]
    rows = pa.table({"group_id": names, "rows": pa.array(range(len(names)))}, schema)
    write_rows(as_read(rows, ["group_id"]), schema, tmp_path / "here", ["group_id"])
    kept = spark.createDataFrame(rows, from_arrow_schema(schema))
    on_spark.on_disk(kept, schema, tmp_path / "on_spark", ["group_id"])
    read_as = from_arrow_schema(schema)
    for folder in ("here", "on_spark"):
        read = stored(schema, tmp_path / folder).to_table().sort_by("rows")
        assert read["group_id"].to_pylist() == [name or None for name in names]
        by_spark = spark.read.schema(read_as).parquet(str(tmp_path / folder)).select("group_id", "rows")
        assert [tuple(row) for row in by_spark.orderBy("rows").collect()] == [
            (name or None, number) for number, name in enumerate(names)
        ]
    assert {path.parent.name for path in (tmp_path / "here").rglob("*.parquet")} == {
        path.parent.name for path in (tmp_path / "on_spark").rglob("*.parquet")
    }
    assert spark.read.parquet(str(tmp_path / "here")).schema["rows"].metadata == {"comment": "How many."}


def test_schemas_are_written_as_spark_writes_them() -> None:
    for name, schema in {**TABLES, "events": EVENTS, "quarantine": QUARANTINE}.items():
        of_spark = from_arrow_schema(schema)
        assert columns_of_spark(schema) == of_spark.json(), name
        assert to_arrow_schema(of_spark).equals(schema, check_metadata=True), name


def test_what_is_small_goes_by_the_events_and_not_by_the_bytes(tmp_path: Path) -> None:
    pq.write_table(pa.table({"seq": pa.array([0] * 1_000_000)}), tmp_path / "many.parquet")
    many = InputFile(str(tmp_path / "many.parquet"), (tmp_path / "many.parquet").stat().st_size, "parquet")
    assert many.size < 100_000
    assert not is_small([many])
    assert not is_small([InputFile("packed.jsonl.gz", 10 * 2**20, "journal")])
    assert is_small([InputFile("plain.jsonl", 10 * 2**20, "journal")])


@pytest.mark.parametrize(
    ("name", "text", "looks_like"),
    [
        (
            "server.log",
            "[2026-03-03 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n",
            " The first line that could be a client's is line 1 of server.log",
        ),
        ("notes.txt", "nothing to see\n", " No line could be a client's. The first is line 1 of notes.txt"),
        ("empty.jsonl", "", " Expected journals"),
    ],
)
def test_where_nothing_names_a_group_that_is_said_without_spark(
    name: str,
    text: str,
    looks_like: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rejoin.pipeline.spark.session.session", start)
    (tmp_path / name).write_text(text)
    assert report([tmp_path], out=tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert f"{name}: nothing about consumer groups in there.{looks_like}" in said
    assert " Expected journals" in said


def test_a_text_about_groups_that_is_no_log_is_refused_without_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rejoin.pipeline.spark.session.session", start)
    for page in (paths.ROOT / "docs" / "groups.md", paths.ROOT / "docs" / "transcripts.md"):
        assert report([page], out=tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert "its layout is not known" in said
        assert "The first line that could be a client's is line" in said


def test_ctrl_c_ends_it_in_one_line(tmp_path: Path) -> None:
    """While the JVM starts; what Spark says when it is stopped later goes the same way."""
    play(scenario_from(CRASH), 1, journal=tmp_path / "run.jsonl", run_id="run")
    # It says when it is past its checks, by the folder of its session.
    command = [sys.executable, "-c", WITH_A_SIGN, str(tmp_path / "run.jsonl"), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "reading 1 file\n"
        running.send_signal(signal.SIGINT)
        printed, problems = running.communicate(timeout=120)
    assert (running.returncode, printed) == (130, "")
    assert [line for line in problems.splitlines() if " s  " not in line] == [
        f"rejoin: stopped; the report in {tmp_path / 'out'} is incomplete"
    ]


WITH_A_SIGN = """
import sys
from pathlib import Path
from rejoin.pipeline.commands import report as command
from rejoin.pipeline.commands.interrupts import Interrupts
from rejoin.pipeline.commands.parser import report
make_report = command.make_report
def make(*arguments, on_step, **options):
    def show(step):
        if "reading" in step:
            print(step, flush=True)
    return make_report(*arguments, on_step=show, **options)
command.make_report = make
sys.exit(report([Path(sys.argv[1])], out=Path(sys.argv[2])))
"""


def test_progress_in_a_file_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rejoin.pipeline.commands import report as command  # noqa: PLC0415

    now = 100.0
    monkeypatch.setattr("rejoin.pipeline.commands.report.time.monotonic", lambda: now)
    with command._progress(Interrupts()) as on_step:
        for step in range(31):
            on_step(f"step {step}")
            now += 1.0
    assert capsys.readouterr().err.splitlines() == [" 10 s  step 10", " 20 s  step 20", " 30 s  step 30"]
