"""The journal on disk: what is written comes back, typed and in order, whatever happened in between."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    Cause,
    CommittedOffset,
    GroupCreated,
    GroupDeleted,
    JournalRowsLost,
    OffsetsCommitted,
    RebalanceStarted,
)
from rejoin.journal.reader import read_journal, read_lines
from rejoin.journal.schema import JournalSchema
from rejoin.journal.segments import JournalError, JournalInUse, segments
from rejoin.journal.writer import JournalWriter, check_directory

SCHEMA = journal_schema()
STARTED = RebalanceStarted(
    group_id="orders-app",
    generation=3,
    previous_state="Stable",
    cause=Cause(cause="leave", member_id="a-1", client_reason="the consumer is being closed"),
    initial=False,
    join_timeout_ms=300_000,
    members=["b-1"],
)


def created(number: int) -> Event:
    return GroupCreated(group_id=f"group-{number}", offsets_partition=number, simple=False)


def write(directory: Path, count: int, run_id: str = "run-1", node: str = "1", **limits: int) -> JournalWriter:
    writer = JournalWriter(directory, run_id, "coordinator", node, **limits)
    for number in range(count):
        writer.append(created(number), 1_000 + number)
    return writer


def seqs(directory: Path, after: int = 0, limit: int | None = None) -> list[int]:
    return [row.seq for row in read_journal(directory, SCHEMA, after, limit)]


def test_a_row_is_its_envelope_and_the_events_own_fields(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "run-1", "coordinator", "1")
    assert writer.append(STARTED, 12_345) == 1
    writer.close()
    (line,) = read_lines(tmp_path)
    assert json.loads(line.text) == {
        "schema_version": 2,
        "run_id": "run-1",
        "source": "coordinator",
        "node": "1",
        "seq": 1,
        "at_ms": 12_345,
        "event": "rebalance_started",
        "group_id": "orders-app",
        "generation": 3,
        "previous_state": "Stable",
        "cause": {
            "cause": "leave",
            "member_id": "a-1",
            "group_instance_id": None,
            "client_reason": "the consumer is being closed",
        },
        "initial": False,
        "join_timeout_ms": 300_000,
        "members": ["b-1"],
        "group_type": "classic",
    }


def test_reading_gives_back_the_very_event(tmp_path: Path) -> None:
    committed = OffsetsCommitted(
        group_id="g",
        member_id="",
        group_instance_id=None,
        generation=-1,
        state="Empty",
        offsets=[CommittedOffset(topic="orders", partition=0, offset=7)],
    )
    writer = JournalWriter(tmp_path, "run-1", "coordinator", "1")
    for event in (STARTED, committed):
        writer.append(event, 1)
    writer.close()
    rows = list(read_journal(tmp_path, SCHEMA))
    assert [row.event for row in rows] == [STARTED, committed]
    assert [type(row.event) for row in rows] == [RebalanceStarted, OffsetsCommitted]
    assert rows[0].envelope.run_id == "run-1"


def test_every_event_of_the_coordinator_has_a_row_model_and_a_schema() -> None:
    schema = SCHEMA.json_schema()
    assert set(schema["discriminator"]["mapping"]) == set(SCHEMA.events)
    assert len(SCHEMA.events) >= 28
    assert "group_event" not in SCHEMA.events
    assert schema["$defs"]["GroupCreatedRow"]["required"] == [
        "schema_version",
        "run_id",
        "source",
        "node",
        "seq",
        "at_ms",
        "event",
        "group_id",
        "offsets_partition",
        "simple",
    ]


def test_a_event_must_not_have_fields_of_the_envelope() -> None:
    class Odd(Event):
        seq: int

    with pytest.raises(AssertionError, match="seq"):
        JournalSchema([Odd])


@pytest.mark.parametrize(
    "change",
    [{"schema_version": 3}, {"event": "no_such_event"}, {"seq": 0}, {"more": 1}, {"source": "broker"}, {"simple": "x"}],
)
def test_a_row_of_another_schema_is_refused(change: dict[str, object]) -> None:
    row = json.loads(RowEncoder("run", "coordinator", "1").encode(1, 1, created(1)))
    with pytest.raises(ValidationError):
        SCHEMA.read(json.dumps({**row, **change}))


def test_rows_are_numbered_on_over_restarts_with_a_new_run_id(tmp_path: Path) -> None:
    write(tmp_path, 3).close()
    write(tmp_path, 2, run_id="run-2").close()
    rows = list(read_journal(tmp_path, SCHEMA))
    assert [(row.seq, row.envelope.run_id) for row in rows] == [
        (1, "run-1"),
        (2, "run-1"),
        (3, "run-1"),
        (4, "run-2"),
        (5, "run-2"),
    ]


def test_a_segment_is_open_until_it_is_full_or_its_writer_closes(tmp_path: Path) -> None:
    writer = write(tmp_path, 5, segment_rows=2)
    writer.flush()
    assert [path.name for path in sorted(tmp_path.glob("*.jsonl*"))] == [
        "coordinator-1-000000000001.jsonl",
        "coordinator-1-000000000003.jsonl",
        "coordinator-1-000000000005.jsonl.open",
    ]
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]
    writer.close()
    assert not list(tmp_path.glob("*.open"))
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


def test_a_segment_is_full_by_size_too(tmp_path: Path) -> None:
    write(tmp_path, 10, segment_bytes=500).close()
    assert len(segments(tmp_path)) > 2
    assert seqs(tmp_path) == list(range(1, 11))


def test_nothing_is_written_before_the_flush_and_all_of_it_then(tmp_path: Path) -> None:
    writer = write(tmp_path, 3)
    assert seqs(tmp_path) == []
    assert writer.unflushed_bytes > 0
    writer.flush()
    assert seqs(tmp_path) == [1, 2, 3]
    assert writer.unflushed_bytes == 0
    writer.close()


def test_rows_that_wait_for_a_full_disk_are_bounded_and_the_gap_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = write(tmp_path, 2, most_waiting_bytes=2_000)
    writer.flush()
    with monkeypatch.context() as patched:

        def full(file: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "no space left on device")

        patched.setattr(os, "write", full)
        for number in range(100):
            writer.append(created(number), number)
            with pytest.raises(OSError, match="no space left"):
                writer.flush()
        assert 2_000 < writer.unflushed_bytes < 3_000
    writer.flush()
    waited = seqs(tmp_path)
    assert waited == list(range(1, len(waited) + 1))
    lost = writer.take_lost()
    assert len(waited) + lost == 102
    assert writer.append(JournalRowsLost(rows_lost=lost), 100) == 103
    writer.append(created(101), 101)
    writer.close()
    assert seqs(tmp_path) == [*waited, 103, 104]


def test_a_gap_that_no_row_explains_is_a_defect(tmp_path: Path) -> None:
    writer = write(tmp_path, 2)
    writer.append(JournalRowsLost(rows_lost=3), 5)
    writer.close()
    (segment,) = segments(tmp_path)
    segment.path.write_bytes(segment.path.read_bytes().replace(b'"seq":3,', b'"seq":5,'))
    with pytest.raises(JournalError, match="row 5 where row 3 was expected"):
        seqs(tmp_path)


def test_a_run_without_events_leaves_no_segment(tmp_path: Path) -> None:
    write(tmp_path, 0).close()
    assert segments(tmp_path) == []
    assert seqs(tmp_path) == []


@pytest.mark.parametrize("cut", [1, 20, 90])
def test_a_half_line_is_left_out_by_readers_and_cut_off_by_the_next_writer(tmp_path: Path, cut: int) -> None:
    _crash(tmp_path, 3)
    (path,) = tmp_path.glob("*.open")
    os.truncate(path, path.stat().st_size - cut)
    assert seqs(tmp_path) == [1, 2]
    write(tmp_path, 1, run_id="run-2").close()
    assert seqs(tmp_path) == [1, 2, 3]
    assert not list(tmp_path.glob("*.open"))


def test_an_open_segment_with_nothing_but_half_a_line_goes_away(tmp_path: Path) -> None:
    _crash(tmp_path, 1)
    (path,) = tmp_path.glob("*.open")
    os.truncate(path, 30)
    write(tmp_path, 1, run_id="run-2").close()
    assert [row.envelope.run_id for row in read_journal(tmp_path, SCHEMA)] == ["run-2"]
    assert seqs(tmp_path) == [1]


def _crash(directory: Path, count: int) -> None:
    """Write and flush, and vanish without closing: the system closes the files of a process that is killed."""
    writer = write(directory, count)
    writer.flush()
    assert writer._file is not None
    os.close(writer._file)
    writer._lock.release()


def test_a_second_writer_of_the_same_stream_is_refused(tmp_path: Path) -> None:
    writer = write(tmp_path, 1)
    with pytest.raises(JournalInUse, match=r"coordinator-1\.lock"):
        JournalWriter(tmp_path, "run-2", "coordinator", "1")
    writer.close()
    write(tmp_path, 1, run_id="run-2").close()


@pytest.mark.parametrize("below", [False, True])
def test_a_place_that_is_no_directory_is_refused_with_its_name(tmp_path: Path, below: bool) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    path = path / "journal" if below else path
    for make in (lambda: write(path, 0), lambda: check_directory(path)):
        with pytest.raises(JournalError, match="this is no directory; expected a directory to write") as raised:
            make()
        assert str(raised.value).startswith(f"{path}: ")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_without_write_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(JournalError, match="cannot be used: Permission denied; expected a directory"):
        check_directory(tmp_path)


def test_writers_of_several_streams_share_a_directory(tmp_path: Path) -> None:
    first = write(tmp_path, 2, node="1")
    other = JournalWriter(tmp_path, "run-1", "client", "host/7-of..9")
    other.append(created(9), 1)
    first.close()
    other.close()
    assert [line.seq for line in read_lines(tmp_path, node="1")] == [1, 2]
    assert [row.envelope.node for row in read_journal(tmp_path, SCHEMA, source="client")] == ["host/7-of..9"]
    assert seqs(tmp_path) == [1, 1, 2]


def test_ranges_are_repeatable(tmp_path: Path) -> None:
    write(tmp_path, 10, segment_rows=3).close()
    assert seqs(tmp_path, after=4, limit=3) == [5, 6, 7]
    assert seqs(tmp_path, after=10) == []
    assert list(read_lines(tmp_path, 2, 5)) == list(read_lines(tmp_path, 2, 5))


def test_segments_are_modified_in_their_order_also_where_the_clock_stood_still_or_was_set_back(tmp_path: Path) -> None:
    def modified_ms() -> list[int]:
        return [segment.path.stat().st_mtime_ns // 1_000_000 for segment in segments(tmp_path)]

    write(tmp_path, 50, segment_rows=1).close()
    newest = segments(tmp_path)[-1].path
    os.utime(newest, (2**32, 2**32))
    write(tmp_path, 1).close()
    writer = write(tmp_path, 1)
    writer.flush()
    writer._lock.release()
    write(tmp_path, 1).close()
    assert len(modified_ms()) == 53
    assert modified_ms() == sorted(set(modified_ms()))


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (b"{half\n", ":2: not JSON"),
        (b"[1]\n", ":2: not a row"),
        (b'{"seq":7}\n', ":2: row 7 where row 2 was expected"),
        (b'{"seq":2}\n', ":2: Unable to extract tag.*event"),
        (b'{"seq":2', ":2: a half line in a closed segment"),
    ],
)
def test_what_is_broken_is_reported_with_file_and_line(tmp_path: Path, broken: bytes, problem: str) -> None:
    write(tmp_path, 1).close()
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("ab") as file:
        file.write(broken)
    with pytest.raises(JournalError, match=f"coordinator-1-000000000001.jsonl{problem}"):
        seqs(tmp_path)


def test_a_missing_segment_is_reported(tmp_path: Path) -> None:
    write(tmp_path, 6, segment_rows=2).close()
    (tmp_path / "coordinator-1-000000000003.jsonl").unlink()
    with pytest.raises(JournalError, match=r"000005\.jsonl:1: row 5 where row 3 was expected"):
        seqs(tmp_path)
    assert seqs(tmp_path, after=4) == [5, 6]


def test_segments_that_were_removed_from_the_beginning_are_no_trouble(tmp_path: Path) -> None:
    write(tmp_path, 6, segment_rows=2).close()
    (tmp_path / "coordinator-1-000000000001.jsonl").unlink()
    assert seqs(tmp_path) == [3, 4, 5, 6]


def test_a_full_disk_loses_and_tears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = write(tmp_path, 5)
    whole, room = os.write, [300]

    def cramped(file: int, data: bytes) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "no space left")
        written = whole(file, bytes(data)[: room[0]])
        room[0] -= written
        return written

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", cramped)
        with pytest.raises(OSError, match="no space"):
            writer.flush()
        assert 0 < len(seqs(tmp_path)) < 5
        writer.append(created(5), 9)
        with pytest.raises(OSError, match="no space"):
            writer.flush()
    writer.close()
    assert seqs(tmp_path) == [1, 2, 3, 4, 5, 6]


@given(
    group_id=st.text(st.characters(exclude_categories=["Cs"])),
    partition=st.integers(-(2**63), 2**63 - 1),
    at_ms=st.integers(0, 2**53),
)
def test_any_text_comes_back(group_id: str, partition: int, at_ms: int) -> None:
    event = GroupCreated(group_id=group_id, offsets_partition=partition, simple=True)
    line = RowEncoder("run", "coordinator", "1").encode(3, at_ms, event)
    assert b"\n" not in line
    row = SCHEMA.read(line)
    assert (row.seq, row.envelope.at_ms, row.event) == (3, at_ms, event)


def test_other_files_in_the_directory_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "broker-1-000000000001.jsonl", "coordinator-1-x.jsonl", "coordinator.jsonl"):
        (tmp_path / name).write_text("?")
    write(tmp_path, 1).close()
    assert seqs(tmp_path) == [1]


def test_deleting_is_a_event_like_any_other(tmp_path: Path) -> None:
    event = GroupDeleted(group_id="ü✓\u2028", reason="requested", offset_count=2)
    writer = JournalWriter(tmp_path, "r", "simulation", "world")
    writer.append(event, 5)
    writer.close()
    assert [row.event for row in read_journal(tmp_path, SCHEMA)] == [event]
