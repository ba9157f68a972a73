"""All tables from Parquet on two cores, beside two of them in DuckDB, in one run.

    python -m benchmarks.pipeline_tables                        # 5 million facts
    python -m benchmarks.pipeline_tables --grow                 # 1, 2, 5 and 10 million

The facts are those of a few simulated deploys, copied under other run ids until there are enough. DuckDB answers the
same two questions, in the columns that need work, with two threads. Both are asked several times, in turns; the first
time counts apart, since Spark compiles its plans then.
"""

from __future__ import annotations

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

import duckdb
import psutil
from cyclopts import run as run_command
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.pipeline_sql import OWNERSHIP, REBALANCES
from pipeline.inputs import find
from pipeline.journals import parse, sort_out
from pipeline.lines import read_lines
from pipeline.report.run import all_tables
from pipeline.session import session
from pipeline.tables.ownership import ownership
from pipeline.tables.rebalances import rebalances
from simulation.reading import read_scenario
from simulation.run import play

MILLION = 1_000_000
SCENARIOS = ("dynamic_rolling_deploy", "eager_scale_out", "cooperative_scale_out", "flapping_consumer")
GALLERY = Path(__file__).parent.parent / "simulation" / "gallery"
ROUNDS = 3


def simulated(folder: Path) -> Path:
    """Journals of a few runs, in parallel with nothing."""
    for number, name in enumerate(SCENARIOS):
        play(read_scenario(GALLERY / f"{name}.yaml"), number, journal=folder / f"{name}.jsonl", run_id=name)
    return folder


def grown(spark: SparkSession, journals: Path, out: Path, wanted: int) -> int:
    """Bronze with at least so many facts; copies of a run differ in their run id."""
    bronze = sort_out(parse(read_lines(spark, find([journals]))).persist()).events.persist()
    once = bronze.count()
    copies = -(-wanted // once)
    numbered = spark.range(copies, numPartitions=4).select(fn.col("id").alias("copy"))
    many = (
        numbered.crossJoin(fn.broadcast(bronze)).withColumn("run_id", fn.concat_ws("-", "run_id", "copy")).drop("copy")
    )
    many.select(*bronze.columns).write.mode("overwrite").parquet(str(out))
    bronze.unpersist()
    return once * copies


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


def all_of_them(spark: SparkSession, events: DataFrame, out: Path) -> dict[str, float]:
    """Every table, written to Parquet as the report does; seconds each."""
    made: dict[str, DataFrame] = {}
    seconds: dict[str, float] = {}
    for name, make in all_tables():
        if name == "findings":
            continue  # small tables in, few rows out

        def write(name: str = name, make: Callable[..., DataFrame] = make) -> None:
            make(events, made).write.mode("overwrite").parquet(str(out / name))

        seconds[name] = timed(write)
        made[name] = spark.read.parquet(str(out / name))
    return seconds


def java_memory() -> int:
    """Resident bytes of the JVMs and Pythons below this process."""
    return sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))


def measure(console: Console, wanted: int, *, everything: bool) -> None:
    """One size."""
    work = Path(tempfile.mkdtemp(prefix="rejoin-tables-"))
    settings = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}
    try:
        journals = simulated(work / "journals")
        with session("local[2]", settings=settings) as spark:
            count = grown(spark, journals, work / "bronze", wanted)
            events = spark.read.parquet(str(work / "bronze"))
            connection = duckdb.connect(config={"threads": 2})
            connection.execute(f"create view events as from read_parquet('{work}/bronze/*.parquet')")
            questions = {
                "rebalances": (lambda: to_nowhere(rebalances(events)), partial(in_duckdb, connection, REBALANCES)),
                "ownership": (lambda: to_nowhere(ownership(events)), partial(in_duckdb, connection, OWNERSHIP)),
            }
            table = Table("", "Spark first", "Spark warm", "DuckDB warm", "ratio", "facts/s", box=SIMPLE_HEAD)
            for name, (ours, theirs) in questions.items():
                first, _ = timed(ours), timed(theirs)
                rounds = [(timed(ours), timed(theirs)) for _ in range(ROUNDS)]
                warm, peer = (statistics.median(column) for column in zip(*rounds, strict=True))
                cells = (
                    f"{first:.1f} s",
                    f"{warm:.1f} s",
                    f"{peer:.1f} s",
                    f"{warm / peer:.1f}",
                    f"{count / warm:,.0f}",
                )
                table.add_row(name, *cells)
            if everything:
                seconds = all_of_them(spark, events, work / "tables")
                seconds = all_of_them(spark, events, work / "tables")
                for name, took in seconds.items():
                    table.add_row(f"  {name}", "", f"{took:.1f} s", "", "", f"{count / took:,.0f}")
                whole = sum(seconds.values())
                table.add_row("all tables, written", "", f"{whole:.1f} s", "", "", f"{count / whole:,.0f}")
            console.print(
                f"{count:,} facts, {sum(f.stat().st_size for f in (work / 'bronze').glob('*.parquet')) / 2**20:.0f} MB"
            )
            console.print(table)
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            console.print(
                f"memory: JVM and workers {java_memory() / 2**30:.1f} GiB, with a heap of 3 GiB; Python {own:.1f} GiB"
            )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def bench(*, facts: int = 5 * MILLION, grow: bool = False, everything: bool = True) -> None:
    """All tables from Parquet on two cores.

    Parameters
    ----------
    facts
        How many, at least.
    grow
        1, 2, 5 and 10 million instead, each in a process of its own.
    everything
        All tables, not only the two that DuckDB makes as well.
    """
    if grow:
        for size in (1, 2, 5, 10):
            subprocess.run(
                [sys.executable, "-m", "benchmarks.pipeline_tables", f"--facts={size * MILLION}"], check=True
            )
        return
    measure(Console(), facts, everything=everything)


def main() -> None:
    """For ``python -m benchmarks``."""
    bench()


if __name__ == "__main__":
    run_command(bench)
