"""Which rows of tables the rules see of a group."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rejoin.pipeline import schemas
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules.offsets_log import SLOW_LOAD_MS
from rejoin.pipeline.findings.sums import KINDS
from rejoin.pipeline.findings.table import rows_by_kind, rows_of_groups, runs_of, without_group

ABOUT = {"run_id": "r", "source": "broker-log", "node": "1", "confidence": "exact"}
RUNS = {name: RunContext(name, 1_000) for name in ("r", "another run")}


def seen(*events: dict[str, Any]) -> list[tuple[int | None, str]]:
    """Place of each event that is seen, with the group that sees it."""
    rows = [{**ABOUT, "seq": number, "at_ms": number, **event} for number, event in enumerate(events)]
    names = {seen.table for seen in KINDS.values()} - {"events"}
    tables = {name: schemas.TABLES[name].empty_table() for name in names}
    sessions = [("r", "g", ["t"]), ("r", "h", ["u"]), ("r", "unknown", None), ("another run", "g", ["t"])]
    tables["member_sessions"] = pa.Table.from_pylist(
        [{"member_id": "m", **dict(zip(("run_id", "group_id", "topics"), row, strict=True))} for row in sessions],
        schemas.MEMBER_SESSIONS,
    )
    tables["events"] = pa.Table.from_pylist(rows, schemas.EVENTS)
    of_runs = tables["events"].filter(without_group(tables["events"]))
    found = rows_of_groups(rows_by_kind(tables), runs_of(RUNS, of_runs))
    return sorted((event.seq, history.group_id) for history in found for event in history.events)


def test_what_a_broker_does_may_concern_every_group_of_its_run() -> None:
    events: list[dict[str, Any]] = [
        {"event": "broker_stopped"},
        {"event": "partition_load_failed"},
        {"event": "partition_loaded", "load_ms": SLOW_LOAD_MS},
        {"event": "partition_loaded", "load_ms": SLOW_LOAD_MS - 1},
    ]
    assert seen(*events) == [(number, group) for number in range(3) for group in ("g", "h", "unknown")]


def test_a_topic_concerns_the_groups_that_read_it_or_may_read_it() -> None:
    assert seen({"event": "topic_grown", "topic": "t", "partition_count": 4}) == [(0, "g"), (0, "unknown")]


def test_of_requests_and_rebalances_those_that_failed_are_seen() -> None:
    asked = {"event": "request", "api": "JOIN_GROUP", "group_id": "g"}
    assert seen(
        {**asked, "error": "COORDINATOR_NOT_AVAILABLE"},
        {**asked, "error": "NONE"},
        asked,
        {"event": "rebalance_started", "group_id": "g", "cause": "store-failure"},
        {"event": "rebalance_started", "group_id": "g", "cause": "leave"},
    ) == [(0, "g"), (3, "g")]
