"""Which events the rules see of a group, where all are rows of this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import READS
from rejoin.pipeline.findings.in_process import rows_of_groups_in_process
from rejoin.pipeline.findings.rules.offsets_log import SLOW_LOAD_MS

ABOUT = {"run_id": "r", "source": "broker-log", "node": "1", "confidence": "exact"}


def seen(*events: dict[str, Any]) -> list[tuple[int, str]]:
    """Place of each event that is seen, with the group that sees it."""
    rows = [{**ABOUT, "seq": number, "at_ms": number, **event} for number, event in enumerate(events)]
    tables = {name: to_arrow_schema(schemas.TABLES[name]).empty_table() for name in READS}
    sessions = [("r", "g", ["t"]), ("r", "h", ["u"]), ("r", "unknown", None), ("another run", "g", ["t"])]
    tables["member_sessions"] = pa.Table.from_pylist(
        [dict(zip(("run_id", "group_id", "topics"), row, strict=True)) for row in sessions],
        to_arrow_schema(schemas.MEMBER_SESSIONS),
    )
    found = rows_of_groups_in_process(tables.__getitem__, pa.Table.from_pylist(rows, to_arrow_schema(schemas.EVENTS)))
    return sorted((row["seq"], row["group_id"]) for kind, row in found if kind == "event")


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
