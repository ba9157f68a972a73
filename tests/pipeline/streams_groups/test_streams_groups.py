"""Tables and findings about streams groups, each with a life that makes it and one that nearly does."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.pipeline.event_fields import COLUMN_OF
from rejoin.pipeline.streams_groups.findings import streams_findings
from rejoin.pipeline.streams_groups.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.streams_groups.schemas import OF_STREAMS_GROUPS
from rejoin.pipeline.streams_groups.words import summary
from tests.pipeline.reading.broker_logs.test_histories import events_of
from tests.pipeline.streams_groups import lives
from tests.pipeline.streams_groups.lives import GROUP, RUN, RecordedStreams

Rows = list[dict[str, Any]]
Life = Callable[[RecordedStreams], None]


def rows_of(journal: str) -> Rows:
    """A journal as rows of the table of events, as far as tables of streams groups read them."""
    rows = []
    for number, line in enumerate(journal.splitlines(), 1):
        row = {COLUMN_OF.get(name, name): value for name, value in json.loads(line).items()}
        cause = row.get("cause")
        if isinstance(cause, dict):
            row |= {"cause": cause["cause"], "cause_member_id": cause["member_id"]}
        for name in ("active", "standby", "warmup", "revoking_active", "revoking_standby"):
            if name in row:
                tasks = row[name].items()
                row[name] = [{"topic": each, "partition": task} for each, found in tasks for task in found]
        for name in ("task_offsets", "task_end_offsets"):
            if row.get(name) is not None:
                tasks = row[name].items()
                row[name] = [
                    {"topic": each, "partition": int(task), "offset": offset}
                    for each, found in tasks
                    for task, offset in found.items()
                ]
        rows.append({"confidence": "exact", "file": "journal", "line": number, **row})
    return rows


def made_of(events: Rows) -> dict[str, Rows]:
    rows = [defaultdict(lambda: None, row) for row in events if row["event"] in READ]
    return tables_of(
        [{name: row[name] for name in COLUMNS} for row in rows], {RUN: max(row["at_ms"] for row in events)}
    )


def made(life: Life, **settings: Any) -> dict[str, Rows]:
    node = RecordedStreams(**settings)
    life(node)
    return made_of(rows_of(node.journal()))


STANDBY = {"group_streams_num_standby_replicas": 1}


def test_a_row_has_the_columns_of_its_table() -> None:
    tables = made_of(rows_of(lives.all_tables()))
    assert all(tables.values())
    for name, rows in tables.items():
        assert {frozenset(row) for row in rows} == {frozenset(OF_STREAMS_GROUPS[name].names)}, name


def test_tasks_over_time_and_why_they_moved() -> None:
    tables = made(lives.healthy)
    moves = [(row["from_member_id"], row["member_id"], row["cause"]) for row in tables["task_moves"]]
    assert Counter(moves) == {("a", "b", "join"): 3, ("a", "b", "leave"): 3}
    has = {(row["subtopology"], row["task"]): row["member_id"] for row in tables["tasks"] if row["to_ms"] is None}
    assert len(has) == 6
    assert set(has.values()) == {"b"}
    assert summary(tables) == "6 active tasks in 1 process; 6 moves: 3 as a member joined, 3 as a member left"


@pytest.mark.parametrize(
    ("life", "causes"),
    [
        (lives.crash, {"join": 3, "crash": 3}),
        (lives.rolling_restart, {"join": 3, "rolling-restart": 12}),
    ],
)
def test_the_cause_of_a_move(life: Life, causes: dict[str, int]) -> None:
    assert Counter(row["cause"] for row in made(life)["task_moves"]) == causes


def test_a_standby_that_takes_its_task_over_is_named() -> None:
    moves = made(lives.crash, **STANDBY)["task_moves"]
    crashed = [row for row in moves if row["cause"] == "crash"]
    assert {row["had_standby"] for row in crashed if row["subtopology"] == "1"} == {True}
    assert {row["had_standby"] for row in crashed if row["subtopology"] == "0"} == {False}


LIVES: dict[str, tuple[Life, dict[str, Any], list[str]]] = {
    "healthy": (lives.healthy, {}, []),
    "a crash": (lives.crash, {}, []),
    "a rolling restart": (lives.rolling_restart, {}, []),
    "no owner for long": (lives.without_owner, {}, ["streams-tasks-without-owner"]),
    "a source topic that comes late": (lives.source_missing, {}, ["streams-source-topic-missing"]),
    "topics that do not match": (lives.wrong_partitions, {}, ["streams-partitions-do-not-match"]),
    "an endpoint before its topics": (
        lives.endpoint_trap,
        {},
        ["streams-source-topic-missing", "streams-endpoint-before-topics"],
    ),
    "two applications": (lives.other_topology, {}, ["streams-not-one-application"]),
    "a shutdown": (lives.shutdown, {}, ["streams-shutdown-requested"]),
    "metadata that change": (lives.changing_metadata, {}, ["streams-metadata-keeps-changing"]),
    "metadata that change twice": (lambda node: lives.changing_metadata(node, 2), {}, []),
    "a standby that is never ready": (lives.standby_never_ready, STANDBY, ["streams-standby-never-ready"]),
    "a standby that catches up": (lambda node: lives.standby_never_ready(node, 14_000), STANDBY, []),
    "a changelog with too many replicas": (lives.topics_refused, {}, ["streams-internal-topics-not-created"]),
    "a topology that cannot run": (lives.invalid_topology, {}, ["streams-topology-invalid"]),
    "a full group": (lives.full, {"group_streams_max_size": 2}, ["streams-group-full"]),
    "a group with room for the third thread": (lives.full, {"group_streams_max_size": 3}, []),
    "a group of consumers": (lives.another_type, {}, ["streams-group-of-another-type"]),
    "streams groups that are off": (
        lives.turned_off,
        {"group_coordinator_rebalance_protocols": "classic,consumer"},
        ["streams-groups-turned-off"],
    ),
}


@pytest.mark.parametrize("name", LIVES)
def test_each_life_has_its_findings_and_no_others(name: str) -> None:
    life, settings, findings = LIVES[name]
    rows = streams_findings(made(life, **settings))
    assert [row["finding"] for row in rows] == findings
    assert {row["group_id"] for row in rows} <= {GROUP}
    assert all(row["evidence"] for row in rows)


IN_LOGS = [
    name
    for name, (_, _, findings) in LIVES.items()
    if not set(findings)
    - {
        "streams-tasks-without-owner",
        "streams-source-topic-missing",
        "streams-partitions-do-not-match",
        "streams-endpoint-before-topics",
        "streams-shutdown-requested",
        "streams-metadata-keeps-changing",
    }
]


@pytest.mark.parametrize("name", IN_LOGS)
def test_lines_of_a_broker_have_the_findings_of_the_journal(name: str) -> None:
    life, settings, findings = LIVES[name]
    node = RecordedStreams(**settings)
    life(node)
    log = BrokerLog((4, 4), 1, 1)
    lines = [line for at, event in node.timed for line in log.lines(event, at)]
    events = [
        {"run_id": RUN, "source": "broker-log", "seq": number, **row} for number, row in enumerate(events_of(lines))
    ]
    rows = [defaultdict(lambda: None, row) for row in events if row["event"] in READ]
    tables = tables_of([{each: row[each] for each in COLUMNS} for row in rows], {RUN: node.now})
    assert [row["finding"] for row in streams_findings(tables)] == findings
