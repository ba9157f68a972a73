"""Recorded logs as events, and the tables that they make, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.recovered.from_client_logs import GOLDEN, read
from rejoin.pipeline.schemas import EVENTS, VERSION
from rejoin.pipeline.vocabulary import BROKER_LOG
from tests.pipeline.incremental.streams import whole

Row = dict[str, Any]


@cache
def tables_of_recording(name: str, *, with_broker: bool = False) -> dict[str, list[Row]]:
    """The tables of one recording of clients, such as ``drawn-python`` or ``drawn-python/aiokafka``."""
    folder = GOLDEN / name
    files = sorted(each for each in folder.rglob("*.log.gz") if each.name != "server.log.gz")
    return tables_of([*files, folder / "server.log.gz"] if with_broker else files)


def tables_of(files: Iterable[Path]) -> dict[str, list[Row]]:
    """The tables of these logs, by name."""
    return whole(events_of_logs(files))


def events_of_logs(files: Iterable[Path]) -> pa.Table:
    """The events of logs as a report reads them."""
    found, _ = read(files)
    found.sort(key=lambda each: (each["order_ms"], each["file"], each["line"], each.get("nth", 0)))
    numbers: dict[tuple[str, str], int] = {}
    rows = []
    for event in found:
        source = event.get("source", BROKER_LOG)
        stream = (source, event["node"])
        numbers[stream] = numbers.get(stream, 0) + 1
        day = datetime.fromtimestamp(event["at_ms"] // 1_000, UTC).date()
        about = {"schema_version": VERSION, "run_id": "logs", "day": day, "source": source, "seq": numbers[stream]}
        known = {name: value for name, value in (event | about).items() if name in EVENTS.names}
        rows.append(dict.fromkeys(EVENTS.names) | known)
    table = pa.Table.from_pylist(rows, EVENTS)
    order = [(name, "ascending") for name in ("at_ms", "source", "node", "seq")]
    return table.take(pc.sort_indices(table, order)).combine_chunks()
