"""Cost of a watch's batch after little and after much input, measured by the same run.

    python -m benchmarks.report.watch      # after ten thousand events, and after a million
    python -m benchmarks.report.watch --before 10000 --before 10000000

The events are those of one group of a simulated run that goes on and on: the same deploys, again and again, under
higher numbers and later instants. What came before is taken in at once. Then come batches of the same size. A query of
Spark's writes the events of each down; its time is the one that Spark reports for the batch, without starting the
query. The tables, rebalances and findings among them, are then brought up to date in this process.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson
from cyclopts import run as run_command
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks import printer
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.watch.event_stream import SETTINGS, keep_events, lines_of_journals
from rejoin.pipeline.watch.store import WatchStore
from rejoin.pipeline.watch.tables import WatchTables
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

BEFORE: Final = (10_000, 1_000_000)
BATCH: Final = 10_000
ROUNDS: Final = 5
WARM_UP: Final = 3
GROWTH: Final = 1.2
"""How much more a batch may take after much than after little."""
SCENARIO: Final = Path(__file__).parents[2] / "simulation" / "gallery" / "dynamic_rolling_deploy.yaml"
_RECORDS: Final = "records_per_second: 0.2"
_ROWS_OF_A_SEGMENT: Final = 100_000


def endless(folder: Path) -> Iterator[bytes]:
    """Lines of a journal in which one run goes on and on."""
    path = folder / "run.jsonl"
    play(scenario_from(re.sub(r"records_per_second: [0-9.]+", _RECORDS, SCENARIO.read_text())), 1, journal=path)
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    length = max(row["at_ms"] for row in rows) + 1
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        stream = (row["source"], row["node"])
        numbers[stream] = max(row["seq"], numbers.get(stream, 0))
    for again in count():
        for row in rows:
            later = {"seq": row["seq"] + again * numbers[row["source"], row["node"]]}
            yield orjson.dumps({**row, **later, "at_ms": row["at_ms"] + again * length}) + b"\n"


def write_segments(folder: Path, lines: Iterator[bytes], events: int, first: int) -> int:
    """Write so many events in closed segments; the number of the next one."""
    for begin in range(0, events, _ROWS_OF_A_SEGMENT):
        rows = list(islice(lines, min(_ROWS_OF_A_SEGMENT, events - begin)))
        (folder / f"simulation-run-{first + begin:012d}.jsonl").write_bytes(b"".join(rows))
    return first + events


def seconds_of(query: StreamingQuery) -> float:
    """Seconds that the batches of a query took, once it has ended."""
    query.awaitTermination()
    taken: list[dict[str, Any]] = [each for each in query.recentProgress if "addBatch" in each["durationMs"]]
    assert taken, "the query took nothing in"
    return float(sum(each["durationMs"]["triggerExecution"] for each in taken)) / 1_000


def take_in(spark: SparkSession, journal: Path, store: WatchStore, tables: WatchTables) -> tuple[float, float]:
    """Take in all events there are; returns the seconds that the query took, and the tables."""
    events = seconds_of(keep_events(lines_of_journals(spark, [journal]), store))
    began = time.perf_counter()
    for _ in tables.updates():
        pass
    return events, time.perf_counter() - began


def bench(*, before: tuple[int, ...] = (), batch: int = 0, rounds: int = 0) -> int:
    """Compare batches after little and after much. Returns 1 if they grow with what came before.

    Parameters
    ----------
    before
        How many events were taken in before; the default is ten thousand and a million.
    batch
        How many come in a batch.
    rounds
        How many batches are measured after each.
    """
    before, batch, rounds = before or BEFORE, batch or BATCH, rounds or ROUNDS
    work = Path(tempfile.mkdtemp(prefix="rejoin-watch-time-"))
    table = Table("events before", "events", "tables", "together", "ratio", box=SIMPLE_HEAD)
    try:
        with session("local[2]", fast=True, settings=SETTINGS) as spark:
            sums = []
            for size in before:
                folder = work / str(size)
                (folder / "journal").mkdir(parents=True)
                store, lines = WatchStore(folder / "out"), endless(folder)
                tables = WatchTables(store)
                first = write_segments(folder / "journal", lines, size, 1)
                take_in(spark, folder / "journal", store, tables)
                times = []
                for _ in range(WARM_UP + rounds):
                    first = write_segments(folder / "journal", lines, batch, first)
                    times.append(take_in(spark, folder / "journal", store, tables))
                medians = [median(column) for column in zip(*times[WARM_UP:], strict=True)]
                sums.append(median(map(sum, times[WARM_UP:])))
                ratio = f"{sums[-1] / sums[0]:.2f}"
                table.add_row(f"{size:,}", *(f"{each:.2f} s" for each in (*medians, sums[-1])), ratio)
                shutil.rmtree(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    growth = sums[-1] / sums[0]
    met = growth <= GROWTH
    console = printer()
    console.print(table)
    console.print(
        f"batches of {batch:,} events, medians of {rounds}; after the most {growth:.2f} x the time after the fewest, "
        f"aim ≤ {GROWTH:g}: {'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


def main() -> int:
    """For ``python -m benchmarks``."""
    return bench()


if __name__ == "__main__":
    run_command(bench)
