"""Brokers' logs on Spark: files in, events, quarantine and counts out; the same as without Spark."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import orjson
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline.reading.broker_logs.on_spark import read_logs
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement, node_of
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.reading.on_spark import Bronze
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.schemas import EVENTS, QUARANTINE
from tests import paths
from tests.pipeline.reading.broker_logs.reconstructed import reconstruct
from tests.pipeline.reading.broker_logs.test_histories import LIFE_3_9, prepare, scala
from tests.pipeline.reading.test_request_log import TWO

GOLDEN = paths.RECORDED
OTHERS = "[2024-01-01 12:00:00,000] INFO Rolled new log segment (kafka.log.Log)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers' folders: rotated and packed logs, a request log, and what else lies about."""
    folder = tmp_path_factory.mktemp("logs")
    first, second = folder / "broker-1", folder / "broker-2"
    first.mkdir()
    second.mkdir()
    with gzip.open(first / "server.log.2024-01-01-11.gz", "wb") as packed:
        packed.write("\n".join(LIFE_3_9[:4]).encode() + b"\n")
    # The end of the rotated file is in this one once more.
    half = "[2024-01-01 12:20:00,000] INFO [GroupCoordinator 1]: Stabilized gro"
    (first / "server.log").write_text("\n".join([OTHERS, *LIFE_3_9[3:6], "", half]))
    (first / "kafka-request.log").write_text("\n".join(text.replace('"g"', '"h"') for text in TWO) + "\n{half a li")
    moved = [
        scala(60, "Loading group metadata for g with generation 1", node=2),
        scala(61, prepare(1, "removing member b on heartbeat expiration"), node=2),
    ]
    (second / "server.log").write_bytes("\n".join(moved).encode() + b"\ncaf\xe9 \x00\x00\n")
    (second / "empty.log").write_bytes(b"")
    (second / "torn.log.gz").write_bytes(gzip.compress(b"x" * 10_000)[:40])
    return folder


def test_lines_that_no_broker_writes_cost_only_themselves(tmp_path: Path) -> None:
    """Nested deeply, numbers of twenty digits, the years 0 and 9999, half characters, and no text at all."""
    deep = '{"a":' * 5_000 + "1" + "}" * 5_000
    json_line = (
        '{{"timestamp":{at},"level":"INFO","logger":"kafka.coordinator.group.GroupCoordinator","message":{said}}}'
    )
    said = '"[GroupCoordinator 1]: Stabilized group {group} generation 7 (__consumer_offsets-3) with 1 members"'
    wrong = TWO[0].replace('"memberId":""', '"memberId":[]')
    assert wrong != TWO[0]
    lines = [
        LIFE_3_9[0],
        LIFE_3_9[1].replace("old generation 0", "old generation 99999999999999999999"),
        LIFE_3_9[1].replace("2024", "0000"),
        LIFE_3_9[1].replace("2024", "9999"),
        json_line.format(at=10**20, said=said.format(group="g")),
        json_line.format(at='"2024-01-01T12:00:09Z"', said=said.format(group="\\ud800")),
        deep,
        TWO[0].partition("{")[0] + deep,
        wrong,
        TWO[0].replace('"totalTimeMs":', '"totalTimeMs":1e300,"was":'),
    ]
    assert lines[1] != LIFE_3_9[1]
    (tmp_path / "server.log").write_bytes("\n".join(lines).encode() + b"\n" + bytes(range(256)) * 8)
    found = list(read_file(str(tmp_path / "server.log")))
    counts = orjson.loads(found[-1]["body"])
    broken = {each["line"]: orjson.loads(each["body"])["reason"] for each in found if each["what"] == "broken"}
    assert sorted(line for line in broken if line <= len(lines)) == [2, 3, 4, 5, 6, 8, 9, 10]
    assert broken[4].endswith("expected an instant between 1970 and 2200")
    assert broken[9] == "a JOIN_GROUP that cannot be read: memberId is [], expected text"
    assert broken[10].startswith("a JOIN_GROUP that cannot be read: totalTimeMs is 1e+300, expected a duration")
    assert (counts["statements"], counts["requests"], counts["broken"]) == (1, 0, len(broken))


def rows(table: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in table.select(*names).collect()]


@pytest.fixture(scope="module")
def logs(spark: SparkSession, cluster: Path) -> Bronze:
    return read_logs(spark, find([cluster]), run_id="prod")


def test_a_cluster_of_logs_becomes_events(logs: Bronze) -> None:
    found = to_arrow_schema(logs.events.schema)
    assert [(field.name, field.type) for field in found] == [(field.name, field.type) for field in EVENTS]
    assert logs.quarantine.columns == QUARANTINE.names
    events = [row.asDict(recursive=True) for row in logs.events.orderBy("source", "node", "seq").collect()]

    def of(name: str, group_id: str, *columns: str) -> list[tuple[Any, ...]]:
        found = [event for event in events if (event["event"], event["group_id"]) == (name, group_id)]
        return [tuple(event[column] for column in columns) for event in found]

    columns = ("node", "cause", "previous_state", "generation", "run_id", "source")
    assert of("rebalance_started", "g", *columns) == [
        ("1", "join-new", "Empty", 0, "prod", "broker-log"),
        ("2", "session-expiry", "Stable", 1, "prod", "broker-log"),
    ]
    assert of("rebalance_completed", "g", "source", "confidence") == [("broker-log", "inferred")]
    ((source, confidence, day, owned),) = of("rebalance_completed", "h", "source", "confidence", "day", "owned_after")
    assert (source, confidence, str(day)) == ("request-log", "exact", "2024-01-01")
    assert owned == [
        {"member_id": "a", "topic": "t", "partition": 0},
        {"member_id": "b", "topic": "t", "partition": 1},
    ]
    assert Counter(api for (api,) in of("request", "h", "api")) == {"JOIN_GROUP": 4, "SYNC_GROUP": 2}
    # Numbers are dense in each stream, in the order of time.
    streams = {(event["source"], event["node"]) for event in events}
    assert streams == {("broker-log", "1"), ("broker-log", "2"), ("request-log", "1")}
    for stream in streams:
        numbers = [event["seq"] for event in events if (event["source"], event["node"]) == stream]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(event["confidence"] and event["file"] and event["line"] for event in events)


def test_every_line_of_every_file_is_somewhere(logs: Bronze, cluster: Path) -> None:
    read = (row for each in find([cluster]) for row in read_file(each.path, each.problem))
    of_files = [orjson.loads(row["body"]) for row in read if row["what"] == "file"]
    files = {Path(row["file"]).relative_to(cluster).as_posix(): row for row in of_files}
    assert len(files) == 6
    for name, row in files.items():
        if not name.endswith("torn.log.gz"):
            used = ("statements", "requests", "other", "continuations", "broken")
            assert sum(row[each] for each in used) == row["lines"], name
    assert files["broker-2/empty.log"]["lines"] == 0
    assert files["broker-2/server.log"]["not_utf8"] == 1
    quarantine = logs.quarantine.orderBy("file", "line").collect()
    assert [(Path(row["file"]).relative_to(cluster).as_posix(), row.line, row.kind) for row in quarantine] == [
        ("broker-1/server.log", 6, "half-line"),
        ("broker-2/server.log", 3, "encoding"),
        ("broker-2/torn.log.gz", None, "unreadable"),
    ]
    # What of a torn line does not show that it was about groups is no more than a line of others.
    assert files["broker-1/kafka-request.log"]["continuations"] == 1


def test_spark_finds_what_plain_reading_finds(spark: SparkSession) -> None:
    files = [file for file in find([GOLDEN]) if file.path.endswith("three-nodes/group-coordinator.log")]
    with Path(files[0].path).open("rb") as file:
        statements = [each for each in LogFile(files[0].path, "1").statements(file) if isinstance(each, Statement)]
    plain = reconstruct(
        sorted(statements, key=lambda statement: (statement.order_ms, statement.node, statement.file, statement.line))
    )
    expected = Counter((event["event"], event.get("group_id"), event["at_ms"], event["line"]) for event in plain)
    events = read_logs(spark, files).events
    assert Counter(rows(events, "event", "group_id", "at_ms", "line")) == expected


def test_times_are_of_the_brokers_zone(spark: SparkSession, cluster: Path) -> None:
    files = [file for file in find([cluster]) if file.path.endswith("broker-2/server.log")]
    (utc,), (there,) = (
        [row["at_ms"] for row in read_events(files, zone).events.to_pylist() if row["event"] == "group_loaded"]
        for zone in ("UTC", "America/New_York")
    )
    assert there - utc == 5 * 3_600_000
    with pytest.raises(ZoneInfoNotFoundError):
        read_logs(spark, files, timezone="Europe/Atlantis")


def test_the_events_have_no_column_that_the_table_lacks(cluster: Path) -> None:
    for path in (*GOLDEN.glob("*/group-coordinator.log"), *cluster.glob("*/*.log")):
        found = LogFile(str(path), "1").statements(path.read_bytes().splitlines())
        for event in reconstruct(each for each in found if isinstance(each, Statement)):
            assert event.keys() <= {*EVENTS.names, "order_ms"}, event


@pytest.mark.parametrize(
    ("path", "node"),
    [
        ("/logs/broker-3/server.log", "3"),
        ("/logs/kafka2/server.log.2024-01-01-08", "2"),
        ("/logs/server-7.log.gz", "7"),
        ("/logs/prod/server.log.1", "server"),
        ("/logs/prod/kafka-request.log.2024-01-01-08.gz", "kafka-request"),
        ("/logs/prod/east.log", "east"),
    ],
)
def test_a_broker_is_named_by_its_file_until_a_line_names_it(path: str, node: str) -> None:
    assert node_of(path) == node


def test_a_file_that_cannot_be_opened_is_reported() -> None:
    broken, counts = read_file("/nowhere/server.log")
    assert (broken["what"], counts["what"]) == ("broken", "file")
    assert "cannot be read" in broken["body"]
