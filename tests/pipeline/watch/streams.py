"""A journal in many small segments, as it comes to be bit by bit, and what a batch makes of it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from rejoin.journal.segments import segments
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.on_spark import Bronze, parse, read_lines, sort_out
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.watch.event_stream import SETTINGS, keep_events, lines_of_journals
from rejoin.pipeline.watch.store import WatchStore
from rejoin.pipeline.watch.tables import TableSummary, WatchTables
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

SCENARIO = """
question: Two groups, two coordinators, one of which goes down in the middle of a rebalance.
horizon: 150s
topics:
  orders: {partitions: 4, records_per_second: 1}
groups:
  orders-app:
    topics: orders
    consumers: 3
    assignor: range
    start: {every: 200ms}
  other-app:
    topics: orders
    consumers: 2
    assignor: cooperative-sticky
    start: {every: 500ms}
coordinator: {nodes: 2}
events:
  - {at: 20s, scale: {group: orders-app, to: 4}}
  - {at: 40s, crash: {who: orders-app-1}}
  - {at: 95s, slow_log: {slower: 1s, for: 10s}}
  - {at: 95s, scale: {group: other-app, to: 3}}
  - {at: 95s, failover: {group: other-app, down: 20s, when: CompletingRebalance}}
  - {at: 120s, scale: {group: orders-app, to: 0}}
"""


def journal(folder: Path, *, seeds: tuple[int, ...] = (1, 2), rows: int = 150) -> list[Path]:
    """Play some runs one after the other into one journal, cut into segments; all of them in the order of writing."""
    whole = folder.with_name(f"{folder.name}-whole")
    for seed in seeds:
        play(scenario_from(SCENARIO), seed, journal=whole, run_id=f"run-{seed}")
    folder.mkdir()
    cut: list[Path] = []
    for stream in sorted({segment.stream for segment in segments(whole)}):
        mine = [each.path for each in segments(whole) if each.stream == stream]
        lines = [line for path in mine for line in path.read_bytes().splitlines(keepends=True)]
        for first in range(0, len(lines), rows):
            path = folder / f"{stream}-{first + 1:012d}.jsonl"
            path.write_bytes(b"".join(lines[first : first + rows]))
            cut.append(path)
    in_order = sorted(cut, key=lambda path: (int(path.stem[-12:]), path.name))
    # Spark takes the oldest files first, and those that are equally old in any order.
    began = time.time() - len(in_order)
    for number, path in enumerate(in_order):
        os.utime(path, (began + number, began + number))
    return in_order


def of_batch(spark: SparkSession, folder: Path) -> Bronze:
    """The events and the quarantine of a folder, read at one time."""
    return sort_out(parse(read_lines(spark, find([folder]))).persist())


def of_stream(spark: SparkSession, store: WatchStore) -> Bronze:
    """The same of what a stream has kept."""
    return sort_out(store.read_events(spark).drop("batch_id").persist())


def rows(table: DataFrame | pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """A table's rows, in an order that is always the same."""
    found = table if isinstance(table, pa.Table) else table.toArrow()
    chosen = found.select(columns) if columns else found
    return sorted((tuple(row.values()) for row in chosen.to_pylist()), key=repr)


def cut_short(lines: DataFrame, store: WatchStore, end: Callable[[], None]) -> None:
    """Take in lines and make tables; end in the second batch, which is written and not committed."""

    def after_write(number: int) -> None:
        if number == 1:
            made(store)
            end()

    keep_events(lines, store, after_write=after_write).awaitTermination()


def made(store: WatchStore) -> list[TableSummary]:
    """Bring the tables up to date as a watch does that ends then."""
    tables = WatchTables(store)
    summaries = list(tables.updates(everything=True))
    tables.close()
    return summaries


def main() -> None:
    """``FOLDER OUT``: print the process id of the JVM, take in a folder, and die in the middle of it."""
    folder, out = map(Path, sys.argv[1:])
    with session("local[2]", fast=True, settings=SETTINGS) as spark:
        gateway = SparkContext._gateway
        assert gateway is not None
        print(gateway.proc.pid, flush=True)
        lines = lines_of_journals(spark, [folder], max_files=8)
        cut_short(lines, WatchStore(out), lambda: os.kill(os.getpid(), signal.SIGKILL))


if __name__ == "__main__":
    main()
