"""The data source over a service's events: every row once, in ranges that can be read again; losses are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from rejoin.pipeline.watch.service import EventsGone, NotAService, ServiceClient, ServiceDown, normal
from rejoin.pipeline.watch.source import EventsStreamReader, Offset, RejoinSource, shares
from tests.pipeline.watch.services import RunningService, serving

ALL = ReadAllAvailable()


def reader(*services: RunningService | str, **options: str) -> EventsStreamReader:
    urls = " ".join(each if isinstance(each, str) else each.url for each in services)
    return EventsStreamReader({"from": urls, **options})


def read(source: EventsStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    """The lines between two offsets."""
    parts = source.partitions(start, end)
    return [row for part in parts for batch in source.read(part) for row in batch.to_pylist()]


def seqs(rows: list[dict[str, Any]]) -> list[int]:
    return [row["line"] for row in rows if row["problem"] is None]


def problems(rows: list[dict[str, Any]]) -> list[str]:
    return [row["problem"] for row in rows if row["problem"] is not None]


def follow(source: EventsStreamReader, start: Offset, limit: ReadLimit = ALL) -> tuple[Offset, list[dict[str, Any]]]:
    end = source.latestOffset(start, limit)
    return end, read(source, start, end)


def test_every_event_comes_once_as_it_stands_in_the_journal(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        source = reader(service)
        first, rows = follow(source, {})
        service.chatter(25)
        second, more = follow(source, first)
        assert follow(source, second) == (second, [])
        assert seqs(rows + more) == list(range(1, service.head + 1))
        assert {row["file"] for row in rows} == {f"{service.url}/events"}
    (journal,) = tmp_path.glob("*.jsonl")
    lines = journal.read_text().splitlines()
    assert [row["text"] for row in rows + more] == lines[: len(rows + more)]


def test_a_range_can_be_read_again_in_many_pieces() -> None:
    with serving() as service:
        service.chatter(95)
        source = reader(service, rowsPerTask="10")
        end = source.latestOffset({}, ALL)
        assert len(source.partitions({}, end)) == -(-service.head // 10)
        rows = read(source, {}, end)
        assert seqs(rows) == list(range(1, service.head + 1))
        service.chatter(5)
        assert read(source, {}, json.loads(json.dumps(end))) == rows


def test_a_limit_is_shared_out_between_services() -> None:
    with serving() as a, serving(broker_id=2) as b:
        a.chatter(1_000)
        source = reader(a, b)
        heads = a.head, b.head
        first, rows = follow(source, {}, ReadMaxRows(100))
        assert len(rows) == 100
        assert [position["seq"] for position in first.values()] == [50, 50]
        total = len(rows)
        while True:
            end, rows = follow(source, first, ReadMaxRows(100))
            assert len(rows) <= 100
            if end == first:
                break
            first, total = end, total + len(rows)
        assert total == sum(heads)


def test_what_one_service_does_not_need_goes_to_the_others() -> None:
    assert shares({"a": 1_000, "b": 3, "c": 0}, 100) == {"a": 97, "b": 3, "c": 0}
    assert shares({"a": 5, "b": 5, "c": 5}, 8) == {"a": 3, "b": 3, "c": 2}
    assert shares({"a": 1, "b": 2}, 100) == {"a": 1, "b": 2}
    assert shares({"a": 9, "b": 9, "c": 9}, 1) == {"a": 1, "b": 0, "c": 0}


def test_a_run_over_what_is_there_ends_though_more_comes() -> None:
    with serving() as service:
        source = reader(service)
        source.prepareForTriggerAvailableNow()
        head = service.head
        service.chatter(50)
        end, rows = follow(source, {})
        assert seqs(rows) == list(range(1, head + 1))
        assert source.latestOffset(end, ALL) == end


def test_a_restart_with_a_journal_is_gone_over_without_a_seam(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        service.chatter(10)
        port = service.app.port
        end, before = follow(reader(service), {})
    with serving(tmp_path, port=port) as again:
        again.chatter(10)
        later, after = follow(reader(again), end)
        assert seqs(before + after) == list(range(1, again.head + 1))
        assert problems(before + after) == []
        assert [position["life"] for position in later.values()] == [1]
        # What was planned before the restart reads the same after it.
        assert read(reader(again), {}, end) == before


def test_a_restart_without_a_journal_is_reported_and_stops_unless_that_was_allowed() -> None:
    with serving() as service:
        service.chatter(10)
        port, run_id = service.app.port, service.run_id
        end, before = follow(reader(service), {})
    with serving(port=port) as again:
        again.chatter(500)
        with pytest.raises(EventsGone, match=f"begun anew, without a journal.*{run_id}.*lost=skip"):
            reader(again).latestOffset(end, ALL)
        later, after = follow(reader(again, lost="skip"), end)
        assert [position["life"] for position in later.values()] == [2]
        assert seqs(after) == list(range(1, again.head + 1))
        (text,) = problems(after)
        assert "begun anew" in text
        assert f"event {len(before)} of run {run_id}" in text
        # Numbers that were planned in the first life are not those of the second.
        with pytest.raises(EventsGone, match="begun anew"):
            read(reader(again), {}, end)
        skipped = read(reader(again, lost="skip"), {}, end)
        assert seqs(skipped) == []
        assert "is lost" in problems(skipped)[0]


def test_rows_that_a_service_forgot_meanwhile_are_reported() -> None:
    with serving() as service:
        end, rows = follow(reader(service), {})
        service.chatter(100)
        service.keep_only(20)
        first = service.head - 19
        with pytest.raises(EventsGone, match=f"events {len(rows) + 1} to {first - 1} were not kept"):
            reader(service).latestOffset(end, ALL)
        later, after = follow(reader(service, lost="skip"), end)
        assert seqs(after) == list(range(first, service.head + 1))
        assert len(problems(after)) == 1
        _, none = follow(reader(service, lost="skip"), later)
        assert none == []
        # A late follower learns what it has missed, which is no failure.
        _, late = follow(reader(service), {})
        assert problems(late) == [f"{service.url}: the events 1 to {first - 1} were not kept by the service"]


def test_rows_that_go_between_planning_and_reading_are_no_short_answer() -> None:
    with serving() as service:
        service.chatter(100)
        end = reader(service).latestOffset({}, ALL)
        service.keep_only(5)
        with pytest.raises(EventsGone, match="no longer kept"):
            read(reader(service), {}, end)


def test_a_service_that_is_down_fails_or_is_waited_for() -> None:
    with serving() as a, serving(broker_id=2) as b:
        start, _ = follow(reader(a, b), {})
        port = b.app.port
        a.chatter(3)
    with serving(port=a.app.port) as a2:
        gone = f"http://127.0.0.1:{port}"
        with pytest.raises(ServiceDown, match=f"{gone} does not answer: connection refused"):
            reader(a2, gone, lost="skip").latestOffset(start, ALL)
        waited = reader(a2, gone, down="wait", lost="skip").latestOffset(start, ALL)
        assert waited[gone] == start[gone]
        assert waited[a2.url]["seq"] == a2.head


def test_others_than_a_service_are_recognised() -> None:
    with serving() as service:
        elsewhere = ServiceClient(f"{service.url}/elsewhere")
        with pytest.raises(NotAService, match="answered 404"):
            elsewhere.standing()
        elsewhere.close()
    for wrong in ("", "ftp://x", "http://", "http://h:x", "http://h/?a=b"):
        with pytest.raises(ValueError, match="expected http://HOST:PORT"):
            normal(wrong)
    assert normal(" localhost:9095/ ") == "http://localhost:9095"
    for options in ({}, {"from": "h:1", "lost": "maybe"}, {"from": "h:1", "maxRowsPerBatch": "0"}):
        with pytest.raises(ValueError, match="option"):
            EventsStreamReader(options)


def test_spark_reads_all_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(RejoinSource)
    with serving(tmp_path / "a") as a, serving(broker_id=2) as b:
        a.chatter(300)
        table = spark.read.format("rejoin").option("from", f"{a.url} {b.url}").option("rowsPerTask", "100").load()
        lines = [(row.file, row.line) for row in table.collect()]
        wanted = [(f"{each.url}/events", seq) for each in (a, b) for seq in range(1, each.head + 1)]
        assert sorted(lines) == sorted(wanted)
    with pytest.raises(PySparkException, match="does not answer"):
        spark.read.format("rejoin").option("from", a.url).load().count()
