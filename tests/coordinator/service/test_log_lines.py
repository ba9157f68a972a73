"""Log lines: pretty for people, JSON for the rest, long events made short."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.coordinator.core.effects import DeferredEvents
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.log_lines import load_summaries as loads
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    AppendFailed,
    Cause,
    GroupLoaded,
    PartitionElected,
    PartitionLoaded,
    PartitionResigned,
    RebalanceCompleted,
)
from rejoin.journal.events.share_partitions import ShareRecordsAcquired
from rejoin.journal.reader import read_journal
from rejoin.journal.writer import JournalWriter
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rejoin.protocol.records.consumer_offsets import offsets_partition

MANY = [f"member-{number}" for number in range(100)]
COMPLETED = RebalanceCompleted(
    group_id="g",
    generation=2,
    cause=Cause(cause="leave", member_id="b"),
    attempts=1,
    rebalance_ms=3,
    join_ms=1,
    sync_ms=2,
    leader="a",
    previous_leader=None,
    protocol="range",
    members_before=MANY,
    members_after=["a"],
    owned_before={member: {"orders": [1]} for member in MANY},
    owned_after={"a": {"orders": [0, 1], "payments": [3]}},
    moved=0,
    regained=1,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    logs.configure("critical")


def test_a_events_line_shows_numbers_where_the_event_has_many() -> None:
    line = logs.shortened(COMPLETED)
    assert line["members_before"] == "[100]"
    assert line["members_after"] == ["a"]
    assert line["owned_before"] == "{100}"
    assert line["owned_after"] == {"a": 3}
    assert line["cause"] == {"cause": "leave", "member_id": "b"}
    assert line.keys() == COMPLETED.model_dump().keys()


def test_trouble_is_louder() -> None:
    failed = AppendFailed(topic="__consumer_offsets", partition=1, epoch=0, records=2, error="REQUEST_TIMED_OUT")
    assert (logs.level_of(COMPLETED), logs.level_of(failed)) == ("info", "warning")
    storage_error = AppendFailed(
        topic="__consumer_offsets", partition=1, epoch=0, records=2, error="KAFKA_STORAGE_ERROR"
    )
    assert logs.level_of(storage_error) == "debug", "the log has reported it"


def test_lines_are_json_without_a_terminal() -> None:
    out = io.StringIO()
    logs.configure("info", out)
    structlog.get_logger().info(COMPLETED.name, **logs.shortened(COMPLETED))
    structlog.get_logger().debug("unseen")
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["event"] == "rebalance_completed"
    assert json.loads(line)["owned_after"] == {"a": 3}


def test_a_stream_that_was_closed_loses_its_lines_and_stops_nothing() -> None:
    out = io.StringIO()
    logs.configure("info", out)
    log = structlog.get_logger()
    log.info("first")
    out.close()
    log.info("second")


def test_lines_of_json_have_escapes_for_what_is_not_visible() -> None:
    logs.configure("info", out := io.StringIO())
    structlog.get_logger().info("group_created", group_id="\x9b2J\u202eé", members=["\x7f"])
    assert out.getvalue().strip().isprintable()
    assert json.loads(out.getvalue())["group_id"] == "\x9b2J\u202eé"


def test_lines_are_pretty_on_a_terminal() -> None:
    out = Terminal()
    logs.configure("debug", out)
    structlog.get_logger().debug("heartbeat", error="UNKNOWN_MEMBER_ID")
    (line,) = out.getvalue().splitlines()
    assert "heartbeat" in line
    assert "UNKNOWN_MEMBER_ID" in line
    assert not line.startswith("{")


def lines_of(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def commit(app: App, group: str) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=(topic,))
    answer = await app.runtime.submit(request, Context(8)).answer()
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


async def loaded(app: App) -> None:
    async with asyncio.timeout(60):
        while len(app.runtime.load_ms) < 50:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_is_loaded_at_the_start_is_one_line_and_every_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "PATIENCE_SECONDS", 600.0)
    options = Options(
        data=tmp_path / "data", journal=tmp_path / "journal", topics=(InitialTopic("orders", 1),), listen=False
    )
    async with App(options) as app:
        await loaded(app)
        for group in ("a", "b", "c"):
            assert await commit(app, group) is ErrorCode.NONE
    logs.configure("info", out := io.StringIO())
    async with App(options) as app:
        await loaded(app)
        app.runtime.resign(offsets_partition(7))
        app.runtime.elect(offsets_partition(7))
        await loaded(app)
    said = lines_of(out)
    (line,) = [line for line in said if line["event"] == "partitions_loaded"]
    assert (line["partitions"], line["records"], line["groups"]) == (50, 3, 3)
    assert line["longest_ms"] >= 0
    assert "still_loading" not in line
    assert [line["partition"] for line in said if line["event"] == "partition_loaded"] == [7], "this one by itself"
    assert "group_loaded" not in {line["event"] for line in said}
    events = [row.event.name for row in read_journal(tmp_path / "journal", journal_schema())]
    assert (events.count("partition_loaded"), events.count("group_loaded")) == (101, 3)


async def test_what_cannot_be_loaded_does_not_hide_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loads, "PATIENCE_SECONDS", 0.01)
    logs.configure("info", out := io.StringIO())
    publisher = Publisher("run", "1", Metrics())
    with publisher.at_debug_level():
        for partition in range(4):
            publisher.publish(PartitionElected(topic="__consumer_offsets", partition=partition, epoch=1), 0)
    for partition in (0, 2):
        publisher.publish(
            PartitionLoaded(topic="__consumer_offsets", partition=partition, epoch=1, load_ms=7, records=20, groups=1),
            0,
        )
    publisher.publish(
        GroupLoaded(group_id="g", offsets_partition=2, state="Empty", generation=0, members=[], offset_count=1), 0
    )
    async with asyncio.timeout(60):
        while not out.getvalue():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    publisher.publish(
        PartitionLoaded(topic="__consumer_offsets", partition=3, epoch=1, load_ms=9, records=1, groups=1), 0
    )
    publisher.publish(PartitionResigned(topic="__consumer_offsets", partition=1, epoch=1, groups=0), 0)
    publisher.close()
    first, last, resigned = lines_of(out)
    assert (first["partitions"], first["records"], first["groups"], first["still_loading"]) == (2, 40, 2, 2)
    assert (last["partitions"], last["records"], last["longest_ms"]) == (1, 1, 9)
    assert resigned["event"] == "partition_resigned"


def test_what_fails_again_and_again_is_reported_at_once_and_then_counted() -> None:
    now = 100.0
    logs.configure("info", out := io.StringIO())
    throttle = LogThrottle(structlog.get_logger(), lambda: now)
    for _ in range(14):
        throttle.failed("append_failed", OSError("disk full"), partition=3)
        now += 0.5
    throttle.failed("read_failed", "gone", level="warning")
    throttle.recovered("append_failed", "appends_stored_again")
    throttle.recovered("append_failed", "appends_stored_again")
    # Comes and goes: that is no line each time.
    for _ in range(20):
        throttle.failed("append_failed", OSError("disk full"), partition=3)
        throttle.recovered("append_failed", "appends_stored_again")
    now += 5
    throttle.failed("append_failed", OSError("disk full"), partition=3)
    found = [
        (line["event"], line["level"], line.get("problem"), line.get("times"), line.get("failures"))
        for line in lines_of(out)
    ]
    assert found == [
        ("append_failed", "error", "OSError: disk full", None, None),
        ("append_failed", "error", "OSError: disk full", 10, None),
        ("read_failed", "warning", "gone", None, None),
        ("appends_stored_again", "info", None, None, 14),
        ("append_failed", "error", "OSError: disk full", 21, None),
    ]


def test_reasons_are_logged_of_each_client_within_bounds_whatever_they_send() -> None:
    reasons = logs.LoggedReasons("refused_total")
    assert [reasons.to_log("a", reason) for reason in ("x", "x", "y")] == ["x", None, "y"]
    assert reasons.to_log("b", "x") == "x"
    said = [reasons.to_log("c", str(number)) for number in range(100)]
    assert [each for each in said if each is not None] == [
        *map(str, range(20)),
        "20 reasons are logged already; others are counted in refused_total and not logged",
    ]
    assert reasons.to_log("d", "1 byte", "bytes") == "1 byte"
    assert reasons.to_log("d", "2 bytes", "bytes") is None
    for number in range(2_000):
        assert reasons.to_log(f"{number} {'x' * 10_000}", "x" * 10_000) is not None
    assert len(reasons._by_client) == 500
    assert max(map(len, reasons._by_client)) == 200
    for number in range(1_000):
        reasons.to_log(f"name {number}", "x", address="10.0.0.1")
    assert reasons.to_log("name 0", "y", address="10.0.0.1") == "y", "one of its first hundred names"
    assert reasons.to_log("name 1000", "x", address="10.0.0.1") is None, "one with all of its others"
    assert reasons.to_log("name 1000", "x", address="10.0.0.2") == "x"
    for number in range(1_000):
        reasons.to_log("name", "x", address=f"10.0.1.{number}")
    assert len(reasons._names) == 500


async def test_a_store_that_refuses_everything_does_not_fill_the_log(tmp_path: Path) -> None:
    logs.configure("info", out := io.StringIO())
    options = Options(data=tmp_path / "data", topics=(InitialTopic("orders", 1),), listen=False)
    async with App(options) as app:
        await loaded(app)
        log = app.store.log
        assert isinstance(log, SqliteLog)
        (writer, _) = log.database._connections
        writer.execute("PRAGMA query_only = 1")
        for _ in range(20):
            assert await commit(app, "g") is ErrorCode.NOT_COORDINATOR
        writer.execute("PRAGMA query_only = 0")
        assert await commit(app, "g") is ErrorCode.NONE
        failed = app.metrics.events["append_failed"]
    found = [line for line in lines_of(out) if "append" in line["event"]]
    assert [line["event"] for line in found] == ["append_failed", "appends_stored_again"]
    assert "readonly" in found[0]["problem"]
    assert (found[1]["failures"], failed) == (20, 20)


def test_events_about_trouble_are_counted_too() -> None:
    logs.configure("info", out := io.StringIO())
    publisher = Publisher("run", "1", Metrics())
    for _ in range(20):
        publisher.publish(
            AppendFailed(topic="__consumer_offsets", partition=1, epoch=0, records=2, error="REQUEST_TIMED_OUT"), 0
        )
    (line,) = lines_of(out)
    assert (line["event"], line["level"], publisher.feed.head) == ("append_failed", "warning", 20)


def test_a_terminal_is_shown_names_and_does_not_obey_them() -> None:
    logs.configure("info", out := Terminal())
    log = structlog.get_logger()
    log.info("group_created", group_id="orders\x1b[2J", members=["\x1b[31m"])
    log.error("core_raised", exc_info=ValueError("first\nof \x9b31m two"))
    assert "orders\\x1b[2J" in out.getvalue()
    assert "['\\x1b[31m']" in out.getvalue()
    assert "ValueError: first\nof \\x9b31m two" in out.getvalue()
    assert not any(sign in out.getvalue() for sign in ("\x1b[2J", "\x9b"))


async def test_deferred_events_are_made_for_the_journal_the_log_and_readers_only(tmp_path: Path) -> None:
    acquired = ShareRecordsAcquired(
        group_id="g", topic="t", partition=0, first_offset=0, last_offset=1, delivery_count=1, member_id="m", lock_ms=1
    )
    made: list[int] = []

    def events() -> list[Event]:
        made.append(1)
        return [acquired, acquired]

    deferred = DeferredEvents("g", {ShareRecordsAcquired: 2}, events)
    logs.configure("info", io.StringIO())
    journal = JournalWriter(tmp_path, "run", "coordinator", "1")
    metrics = Metrics()
    unread, written = Publisher("run", "1", metrics), Publisher("run", "1", Metrics(), journal)
    unread.publish(acquired, 5)  # whether a class is logged is known from its first event
    unread.publish_deferred(deferred, 5)
    assert (made, unread.feed.head, metrics.events["share_records_acquired"]) == ([], 3, 3)
    rows = [orjson.loads(row.text) for row in unread.feed.range(0, 10).entries]
    assert [row.pop("seq") for row in rows] == [1, 2, 3]
    assert rows[0] == rows[1] == rows[2]
    assert len(made) == 1
    written.publish_deferred(deferred, 5)
    assert (len(made), journal.seq) == (2, 2)
    journal.close()
    logs.configure("debug", out := io.StringIO())
    Publisher("run", "1", Metrics()).publish_deferred(deferred, 5)
    assert len(lines_of(out)) == 2
