"""All tables from Parquet on two cores, compared with two of them in DuckDB, measured by the same run.

    python -m benchmarks.pipeline_tables                        # 5 million events
    python -m benchmarks.pipeline_tables --grow                 # 1, 2, 5 and 10 million

The events are those of a few simulated deploys, copied under other run ids until there are enough. The more records a
topic gets, the smaller is the part of them that ``rebalances`` and ``ownership`` are made of; ``--records`` says how
many a second each topic gets.

DuckDB answers the same two questions, in every column, with two threads; before anything is measured, both have to give
the same rows for one copy of the events. They are asked several times, in turns. The first time counts apart, and so do
a few more, in which Java compiles what Spark made of the plans.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import psutil
from cyclopts import run as run_command
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import printer
from benchmarks.pipeline_sql import OWNERSHIP, REBALANCES
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.on_spark import parse, read_lines, sort_out
from rejoin.pipeline.report.tables import all_tables
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.tables.group_tables import ownership, rebalances
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

MILLION = 1_000_000
SCENARIOS = ("dynamic_rolling_deploy", "eager_scale_out", "cooperative_scale_out", "flapping_consumer")
GALLERY = Path(__file__).parent.parent / "simulation" / "gallery"
RECORDS = 0.2
EVENTS = 5 * MILLION
WARM_UP = 4
ROUNDS = 5
EVERYTHING = True
"""Whether every table is made, or only the two that DuckDB makes as well."""

MADE = {"rebalances": (rebalances, REBALANCES), "ownership": (ownership, OWNERSHIP)}


class Cost(NamedTuple):
    """Of a table. CPU is that of Java and Python together, which a busy machine changes less than the clock."""

    seconds: float
    cpu: float


def simulated(folder: Path, records: float) -> Path:
    """Journals of a few runs, with so many records a second in each topic."""
    for number, name in enumerate(SCENARIOS):
        text = (GALLERY / f"{name}.yaml").read_text()
        text = re.sub(r"records_per_second: [0-9.]+", f"records_per_second: {records}", text)
        play(scenario_from(text), number, journal=folder / f"{name}.jsonl", run_id=name)
    return folder


def grown(spark: SparkSession, journals: Path, out: Path, wanted: int) -> int:
    """Bronze with at least so many events; copies of a run differ in their run id."""
    bronze = sort_out(parse(read_lines(spark, find([journals]))).persist()).events.persist()
    must_be_the_same(bronze)
    once = bronze.count()
    copies = -(-wanted // once)
    numbered = spark.range(copies, numPartitions=4).select(fn.col("id").alias("copy"))
    many = (
        numbered.crossJoin(fn.broadcast(bronze)).withColumn("run_id", fn.concat_ws("-", "run_id", "copy")).drop("copy")
    )
    many.select(*bronze.columns).write.mode("overwrite").parquet(str(out))
    bronze.unpersist()
    return once * copies


def must_be_the_same(events: DataFrame) -> None:
    """A side with other rows does other work, and there is nothing to compare."""
    connection = duckdb.connect()
    connection.register("events", events.toArrow())
    for name, (make, query) in MADE.items():
        connection.register("spark", make(events).toArrow())
        columns = ", ".join(f'"{column[0]}"' for column in connection.execute("describe spark").fetchall())
        connection.execute(f"create or replace temp table duck as select {columns} from ({query})")
        for one, other in (("spark", "duck"), ("duck", "spark")):
            rows = f"from (from {one} except all from {other})"
            [[missed]] = connection.execute(f"select count(*) {rows}").fetchall()
            assert missed == 0, (
                f"{name}: {missed} rows of {one} are not in {other}: {connection.sql(f'{rows} limit 1')}"
            )


def to_nowhere(table: DataFrame) -> None:
    """Make every column of every row, and keep none."""
    table.write.mode("overwrite").format("noop").save()


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_duckdb(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    """The same: every row and column is made, as DuckDB's own vectors."""
    connection.execute(f"create or replace temp table answer as {query}")
    [[rows]] = connection.execute("select count(*) from answer").fetchall()
    return int(rows)


def all_of_them(spark: SparkSession, events: DataFrame, out: Path) -> dict[str, Cost]:
    """Every table, written to Parquet as the report does, and what each costs."""
    made: dict[str, DataFrame] = {}
    costs: dict[str, Cost] = {}
    for name, make in all_tables():
        if name == "findings":
            continue  # small tables in, few rows out

        def write(name: str = name, make: Callable[..., DataFrame] = make) -> None:
            make(events, made).write.mode("overwrite").parquet(str(out / name))

        before = cpu_seconds()
        seconds = timed(write)
        costs[name] = Cost(seconds, cpu_seconds() - before)
        made[name] = spark.read.parquet(str(out / name))
    return costs


def cpu_seconds() -> float:
    """CPU seconds of this process, of the JVM and of its Pythons, also of those that have ended."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in times))


def java_memory() -> int:
    """Resident bytes of the JVMs and Pythons below this process."""
    return sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))


def measure(console: Console, wanted: int, records: float, *, everything: bool) -> None:
    """One size."""
    work = Path(tempfile.mkdtemp(prefix="rejoin-tables-"))
    settings = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}
    try:
        journals = simulated(work / "journals", records)
        with session("local[2]", settings=settings) as spark:
            count = grown(spark, journals, work / "bronze", wanted)
            events = spark.read.parquet(str(work / "bronze"))
            connection = duckdb.connect(config={"threads": 2})
            connection.execute(f"create view events as from read_parquet('{work}/bronze/*.parquet')")
            table = Table("", "rows", "first", "warm", "CPU", "DuckDB", "ratio", "events/s", box=SIMPLE_HEAD)
            for name, (make, query) in MADE.items():
                compare(
                    table,
                    name,
                    count,
                    partial(_made, make, events),
                    partial(in_duckdb, connection, query),
                )
            if everything:
                first = all_of_them(spark, events, work / "tables")
                # The ranges of records that two tables share would be there already.
                spark.catalog.clearCache()
                warm = all_of_them(spark, events, work / "tables")
                for name in warm:
                    rows = spark.read.parquet(str(work / "tables" / name)).count()
                    add_costs(table, f"  {name}", count, first[name], warm[name], rows=f"{rows:,}")
                sums = [Cost(*map(sum, zip(*costs.values(), strict=True))) for costs in (first, warm)]
                add_costs(table, "all tables, written", count, *sums)
            size = sum(file.stat().st_size for file in (work / "bronze").glob("*.parquet")) / 2**20
            console.print(f"{count:,} events, {size:.0f} MB; topics get {records} records a second")
            console.print(table)
            console.print(
                f"ratio: to DuckDB, which gave the same rows; warm: the median of {ROUNDS} after {WARM_UP + 1}"
            )
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            console.print(
                f"memory: JVM and workers {java_memory() / 2**30:.1f} GiB, with a heap of 3 GiB; Python {own:.1f} GiB"
            )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def add_costs(table: Table, name: str, count: int, first: Cost, warm: Cost, *, rows: str = "") -> None:
    """A row about tables that DuckDB does not make."""
    seconds = (f"{each:.1f} s" for each in (first.seconds, warm.seconds, warm.cpu))
    table.add_row(name, rows, *seconds, "", "", f"{count / warm.seconds:,.0f}")


def _made(make: Callable[[DataFrame], DataFrame], events: DataFrame) -> None:
    to_nowhere(make(events))


def compare(table: Table, name: str, count: int, ours: Callable[[], object], theirs: Callable[[], int]) -> None:
    """One question to both, in turns."""
    first, rows = timed(ours), theirs()
    for _ in range(WARM_UP):
        ours()
        theirs()
    rounds = [(timed(ours), timed(theirs)) for _ in range(ROUNDS)]
    warm, peer = (statistics.median(column) for column in zip(*rounds, strict=True))
    seconds = (f"{each:.1f} s" for each in (first, warm))
    table.add_row(name, f"{rows:,}", *seconds, "", f"{peer:.2f} s", f"{warm / peer:.1f}", f"{count / warm:,.0f}")


def bench(*, events: int = EVENTS, records: float = RECORDS, grow: bool = False, everything: bool = True) -> None:
    """All tables from Parquet on two cores.

    Parameters
    ----------
    events
        How many, at least.
    records
        How many a second each topic gets.
    grow
        1, 2, 5 and 10 million instead, each in a process of its own.
    everything
        All tables, not only the two that DuckDB makes as well.
    """
    if grow:
        for size in (1, 2, 5, 10):
            size_and_rate = (f"--events={size * MILLION}", f"--records={records}")
            subprocess.run([sys.executable, "-m", "benchmarks.pipeline_tables", *size_and_rate], check=True)
        return
    measure(printer(), events, records, everything=everything)


def main() -> None:
    """For ``python -m benchmarks``."""
    bench(events=EVENTS, everything=EVERYTHING)


if __name__ == "__main__":
    run_command(bench)
