"""Whatever lies in a folder of journals: every line is either an event or in the quarantine, with the reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoin.pipeline.reading.inputs import InputFile, NoInput, find
from rejoin.pipeline.reading.pieces import pieces
from rejoin.pipeline.reading.text_lines import batches_of
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.report.run import to_read
from rejoin.pipeline.schemas import EVENTS
from tests.pipeline.bad_files import FILES, row, text, write_foreign_tables

Row = Any
"""A row, whose values are attributes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    return path


class Read(NamedTuple):
    """Rows of the events and of the quarantine, of all files.

    :mod:`tests.pipeline.reading.test_journal_lines` reads the same files on Spark.
    """

    events: list[Row]
    quarantine: list[Row]

    @classmethod
    def of(cls, files: Sequence[InputFile]) -> Read:
        return cls(*([SimpleNamespace(**row) for row in rows.to_pylist()] for rows in read_events(files, "UTC")))

    def quarantined(self, name: str) -> list[Row]:
        """The rows of a file in the quarantine, in the order of its lines."""
        rows = [each for each in self.quarantine if each.file.endswith(f"/{name}")]
        return sorted(rows, key=lambda each: (each.line is not None, each.line))


@pytest.fixture(scope="module")
def read(folder: Path) -> Read:
    return Read.of(find([folder]))


def quarantined(read: Read, name: str) -> list[tuple[Any, ...]]:
    return [(each.line, each.kind) for each in read.quarantined(name)]


def taken(read: Read, node: str) -> list[int]:
    return sorted(each.seq for each in read.events if each.node == node)


def test_what_is_whole_is_taken(read: Read) -> None:
    assert taken(read, "n1") == [1, 2, 3]
    assert taken(read, "n4") == [1, 2]
    assert taken(read, "n5") == [1, 2]
    assert taken(read, "z") == [1, 2]
    for name in ("empty.jsonl", "good.jsonl", "no_end.jsonl", "windows.jsonl", "packed.jsonl.gz"):
        assert quarantined(read, name) == []


def test_half_lines(read: Read) -> None:
    # An open segment is still being written; a closed one that breaks off is torn.
    assert taken(read, "n2") == [1]
    assert quarantined(read, "coordinator-n2-000000000001.jsonl.open") == []
    assert taken(read, "n3") == [1]
    assert quarantined(read, "half.jsonl") == [(2, "half-line")]


def test_every_broken_line_says_where_and_why(read: Read) -> None:
    assert taken(read, "m") == [1, 10]
    assert quarantined(read, "mixed.jsonl") == [
        (2, "not-json"),
        (3, "not-json"),
        (4, "not-json"),
        (5, "not-json"),
        (6, "not-json"),
        (7, "version"),
        (8, "unknown-event"),
        (9, "field"),
        (10, "field"),
        (11, "not-a-row"),
        (12, "not-a-row"),
        (13, "encoding"),
        (14, "field"),
    ]
    reasons = {each.line: each.reason for each in read.quarantined("mixed.jsonl")}
    assert reasons[7] == "schema version 3; this program knows versions up to 2, take a newer one"
    assert reasons[8] == "unknown event group_enchanted"
    assert reasons[9] == "partition_elected without epoch"
    assert reasons[11] == "not a row of a journal: it has no at_ms"
    assert reasons[13].startswith("not UTF-8: byte 0xe9")


def test_lines_that_no_service_writes_cost_only_themselves(read: Read) -> None:
    """Nested deeply, with numbers of twenty digits, with instants after the year 9999, or no text at all."""
    assert taken(read, "h") == [1, 12]
    assert quarantined(read, "hostile.jsonl") == [
        (2, "not-json"),
        (3, "not-json"),
        (4, "field"),
        (5, "field"),
        (6, "field"),
        (7, "field"),
        (8, "field"),
        (9, "not-a-row"),
        (10, "not-json"),
        (11, "encoding"),
    ]
    reasons = {each.line: each.reason for each in read.quarantined("hostile.jsonl")}
    assert reasons[4] == "a number is too large: 100000000000000000000; expected at most 2^53"
    assert reasons[7] == "at_ms is 253402300799999; expected an instant between 1970 and 2200"


def test_a_line_without_an_end_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.pipeline.reading.pieces.LONGEST", 10_000)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"first\n" + b"x" * 5_000_000 + b"\nlast\n")
    read = [row for piece in pieces(find([path])) for batch in batches_of(piece) for row in batch.to_pylist()]
    assert [(each["line"], len(each["text"])) for each in read] == [(1, 5), (2, 4_096), (3, 4)]
    assert read[1]["problem"] == "longer than 10000 bytes"


def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_it_went(tmp_path: Path) -> None:
    path = tmp_path / "growing.jsonl"
    path.write_bytes(text(row(1), row(2)) + b'{"half')
    cut = pieces(find([path]))
    with path.open("ab") as file:
        file.write(b' a line":1}\n' + text(row(3)))
    read = [row for piece in cut for batch in batches_of(piece) for row in batch.to_pylist()]
    assert [(each["line"], each["problem"]) for each in read] == [(1, None), (2, None), (3, None)]
    assert read[2]["text"] == '{"half a line":1}'


def test_links_in_circles_and_names_of_bytes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(text(row(1)))
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "inside").symlink_to(tmp_path)
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.log")).write_bytes(b"")
    found = {Path(each.path).name: each.problem for each in find([tmp_path])}
    assert found == {
        "good.jsonl": None,
        "circle": "cannot be read: Too many levels of symbolic links",
        "nowhere": "cannot be read: No such file or directory",
        r"caf\xe9.log": "cannot be read: its name is not UTF-8; rename it",
    }
    with pytest.raises(NoInput, match="no such file or directory"):
        find([tmp_path / "circle"])


def test_wrong_encodings_and_broken_archives(read: Read) -> None:
    assert quarantined(read, "utf16.jsonl")[0][1] == "encoding"
    assert quarantined(read, "torn.jsonl.gz")[0] == (None, "unreadable")
    rest = taken(read, "t")
    assert rest == list(range(1, len(rest) + 1))


def test_each_row_counts_once(read: Read) -> None:
    assert taken(read, "p") == [1, 2, 3]
    assert quarantined(read, "again.jsonl") == []
    assert quarantined(read, "repeated.jsonl") == [(2, "repeated"), (3, "repeated"), (5, "conflict")]


def test_no_line_is_lost(read: Read, folder: Path) -> None:
    plain = [part for name, part in FILES.items() if not name.endswith((".gz", ".open"))]
    lines = sum(part.count(b"\n") + bool(part and not part.endswith(b"\n")) for part in plain)
    found = [each for each in (*read.events, *read.quarantine) if not each.file.endswith((".gz", ".open"))]
    assert len(found) == lines


def test_lines_of_a_large_file_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    lines = [f"line {number} " + "x" * (number % 41) for number in range(1, 3_001)]
    path.write_text("\n".join(lines) + "\n")
    cut = pieces(find([path]), piece_bytes=997)
    assert len(cut) > 50
    read = [
        (number, line)
        for piece in cut
        for batch in batches_of(piece)
        for number, line in zip(batch["line"].to_pylist(), batch["text"].to_pylist(), strict=True)
    ]
    assert sorted(read) == list(enumerate(lines, 1))


def test_parquet_of_another_make_and_of_a_newer_version(folder: Path, tmp_path: Path) -> None:
    rows = read_events(find([folder / "good.jsonl"]), "UTC").events.to_pylist()
    newer = [{**each, "schema_version": 99, "node": "n9"} for each in rows if each["seq"] == 3]
    pq.write_table(pa.Table.from_pylist([*rows, *newer], EVENTS), tmp_path / "table.parquet")
    (tmp_path / "fake.parquet").write_bytes(b"PAR1 in name only")
    found = find([tmp_path])
    assert [each.problem is None for each in found] == [False, True]
    read = Read.of(found[1:])
    assert taken(read, "n1") == [1, 2, 3]
    assert [each.kind for each in read.quarantine] == ["version"]


def test_tables_of_something_else_are_left_out_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(text(row(1), row(2)))
    write_foreign_tables(tmp_path)
    read = Read.of(find([tmp_path]))
    rejected = {Path(each.file).stem: (each.kind, each.line, each.reason) for each in read.quarantine}
    assert {name: (kind, line) for name, (kind, line, _) in rejected.items()} == dict.fromkeys(
        ("foreign", "numbers", "words", "lists"), ("not-a-row", None)
    )
    start = "not a table of events, its 1 rows are left out: "
    assert rejected["foreign"][2].startswith(f"{start}it has no schema_version, run_id")
    assert rejected["numbers"][2] == f"{start}members is int instead of array<string>"
    assert "seq is timestamp" in rejected["words"][2]
    assert "partitions is array<int>" in rejected["lists"][2]
    # Wider and narrower numbers are numbers; one that there is no room for is nothing.
    wide = [each for each in read.events if (each.run_id, each.source) == ("r", "s")]
    assert [(each.generation, each.epoch, each.seq) for each in wide] == [(None, 4, 1)]
    assert sum(each.source == "coordinator" for each in read.events) == 2


def test_what_is_no_parquet_is_reported_even_where_all_is_to_be_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(text(row(1)))
    read = Read.of(to_read([tmp_path], tmp_path / "out", "parquet"))
    assert [(each.kind, each.line) for each in read.quarantine] == [("unreadable", None)]


def test_tables_of_reports_are_passed_over_and_their_events_are_read_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(text(row(1)))
    report = tmp_path / "why"
    for table in ("events", "quarantine", "findings"):
        (report / "tables" / table / "day=2026-01-01").mkdir(parents=True)
        (report / "tables" / table / "day=2026-01-01" / "part.parquet").write_bytes(b"PAR1")
    (report / "report.html").write_text("<html>")

    def names(*paths: Path) -> list[str]:
        return [str(Path(each.path).relative_to(tmp_path.resolve())) for each in find(paths)]

    events = "why/tables/events/day=2026-01-01/part.parquet"
    assert names(tmp_path) == ["good.jsonl"]
    assert names(report / "tables") == names(report / "tables" / "events") == [events]
    with pytest.raises(NoInput, match="Reports of ours are passed over"):
        find([report])
    # A report goes beside what it is about, again and again; only what it would write over is refused.
    assert [each.path for each in to_read([tmp_path], report)] == [str((tmp_path / "good.jsonl").resolve())]
    assert len(to_read([tmp_path], tmp_path)) == 1
    for path in (report / "tables", report / "tables" / "events", report / "report.html"):
        with pytest.raises(NoInput, match="choose another --out"):
            to_read([path], report)


def test_nothing_to_read_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NoInput, match="no such file or directory"):
        find([tmp_path / "missing"])
    with pytest.raises(NoInput, match="no files there"):
        find([tmp_path])
