"""A folder of Parquet of every sort: rows of events are taken, of all the rest the quarantine says what it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.reading.inputs import NoInput, find
from rejoin.pipeline.reading.parquet_files import with_whole_pages
from rejoin.pipeline.report import events as here
from rejoin.pipeline.report import on_spark
from rejoin.pipeline.report.run import make_report

ROW = {"schema_version": 2, "run_id": "r", "source": "client", "node": "n", "seq": 1, "at_ms": 5, "event": "e"}
HUGE: tuple[dict[str, object], ...] = (
    {"at_ms": 10**18},
    {"join_ms": 10**18},
    {"generation": 2_000_000_000},
    {"partition_count": 100_001},
    {"schema_version": 2**31 - 1},
)


def written(path: Path, *rows: dict[str, object]) -> bytes:
    pq.write_table(pa.Table.from_pylist(list(rows)), path, compression="none")
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    good = written(tmp_path / "good.parquet", *[ROW | {"seq": seq, "member_id": f"member-{seq}"} for seq in (1, 2, 3)])
    (tmp_path / "cut-off.parquet").write_bytes(good[: len(good) // 2])
    (tmp_path / "damaged.parquet").write_bytes(good[:4] + b"\xff" * 60 + good[64:])
    (tmp_path / "no-text.parquet").write_bytes(good.replace(b"member_id", b"member_\xff\xff"))
    (tmp_path / "nothing.parquet").write_bytes(b"")
    (tmp_path / "text.parquet").write_text("not Parquet\n")
    written(tmp_path / "foreign.parquet", {"id": 1})
    written(tmp_path / "words.parquet", ROW | {"at_ms": "now"})
    pq.write_table(pa.Table.from_pylist([ROW]).slice(0, 0), tmp_path / "no-rows.parquet")
    fields = dict.fromkeys(name for each in HUGE for name in each if name not in ROW)
    written(tmp_path / "huge.parquet", *[{**fields, **ROW, "seq": 10 + seq, **each} for seq, each in enumerate(HUGE)])
    (tmp_path / "notes.jsonl").write_text("no journal\n")
    return tmp_path


@pytest.mark.parametrize("small", [True, False])
def test_what_is_no_table_of_events_is_named(spark: SparkSession, folder: Path, small: bool) -> None:
    found = [with_whole_pages(each) for each in find([folder])]
    if small:
        events, quarantine = (rows.to_pylist() for rows in here.read_events(found, "UTC"))
    else:
        events, quarantine = (rows.toArrow().to_pylist() for rows in on_spark.read_events(spark, found, "UTC"))
    assert sorted((row["seq"], row["member_id"]) for row in events) == [(seq, f"member-{seq}") for seq in (1, 2, 3)]
    kinds = sorted((Path(row["file"]).stem, row["kind"]) for row in quarantine)
    assert kinds == sorted(
        [
            *((name, "unreadable") for name in ("cut-off", "damaged", "no-text", "nothing", "text")),
            *((name, "not-a-row") for name in ("foreign", "words")),
            *([("huge", "field")] * 4),
            ("huge", "version"),
            ("notes", "not-json"),
        ]
    )
    assert not [row for row in quarantine if not row["reason"] or "\n" in row["reason"]]


def test_damaged_parquet_alone_is_said_in_one_sentence(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoInput, match=r"cut-off.parquet: nothing about consumer groups in there \(cannot be read as"):
        make_report([folder / "cut-off.parquet"], tmp_path / "out")
