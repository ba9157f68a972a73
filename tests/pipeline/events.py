"""Events written by hand, as rows of bronze."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.schemas import EVENTS, VERSION

MS_A_DAY = 86_400_000


def events_table(spark: SparkSession, events: Iterable[dict[str, Any]]) -> DataFrame:
    """Bronze of events, on Spark."""
    rows = [tuple(row.get(name) for name in EVENTS.names) for row in numbered(events)]
    return spark.createDataFrame(rows, from_arrow_schema(EVENTS))


def events_here(events: Iterable[dict[str, Any]]) -> pa.Table:
    """Bronze of events, in this process."""
    return pa.Table.from_pylist(numbered(events), EVENTS)


def numbered(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of events. Each is numbered within its stream unless it says its number itself."""
    numbers: dict[tuple[str, str, str], int] = {}
    rows = []
    for line, event in enumerate(events, 1):
        given = {"run_id": "run", "source": "coordinator", "node": "n1", "group_id": "g", **event}
        stream = (given["run_id"], given["source"], given["node"])
        numbers[stream] = given.setdefault("seq", numbers.get(stream, 0) + 1)
        given |= {
            "schema_version": VERSION,
            "confidence": given.get("confidence", "exact"),
            "file": "events",
            "line": line,
        }
        given["day"] = datetime.fromtimestamp(given["at_ms"] // MS_A_DAY * 86_400, UTC).date()
        assert not set(given) - set(EVENTS.names), sorted(set(given) - set(EVENTS.names))
        rows.append(given)
    return rows


def coordinator(at_ms: int, event: str, **fields: Any) -> dict[str, Any]:
    """An event of a coordinator."""
    return {"at_ms": at_ms, "event": event, **fields}


def consumer(client_id: str, at_ms: int, event: str, *partitions: int, **fields: Any) -> dict[str, Any]:
    """An event of a consumer with a process of its own, about partitions of topic t."""
    owned = [{"topic": "t", "partition": index} for index in partitions]
    about = {"client_id": client_id, "member_id": f"{client_id}-id", "generation": 1, "partitions": owned}
    return {"at_ms": at_ms, "event": event, "source": "client", "node": f"process-{client_id}", **about, **fields}


def frame(spark: SparkSession, schema: pa.Schema, *rows: dict[str, Any]) -> DataFrame:
    """A table by hand; what a row does not say is null."""
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], from_arrow_schema(schema)
    )
