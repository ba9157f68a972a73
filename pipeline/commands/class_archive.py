"""``python -m rejoin.pipeline.commands.class_archive``: let later sessions of Spark start in half the CPU.

A JVM that has answered a query writes down the classes that it has loaded. That takes half a minute, and the archive
is about 150 MB long. Processes that do this at once do not disturb each other.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from rejoin.output import print_aside, print_text
from rejoin.pipeline.spark.class_archive import FOLDER, archive_path
from rejoin.pipeline.spark.java import NoJava, find_java
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.spark.trouble import SparkTrouble

PATIENCE_S: Final = 600
_QUICK: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for little data: to compile a query takes longer than to run it."""
_QUERY: Final = """
select k, n, sum(n) over (partition by k order by n) as running from (select id % 3 as k, count(*) as n from range(9)
group by 1) join (select explode(array(0, 1, 2)) as k) using (k) order by k
"""
"""The operators of most tables: an aggregate, a join, a window, a sort."""


def main() -> int:
    """Make the archive, unless it is there."""
    try:
        archive = archive_path(find_java())
        if not archive.exists():
            _make(archive)
    except (NoJava, SparkTrouble, OSError) as problem:
        print_aside(f"{problem}; Spark starts without an archive of its classes")
        return 2
    print_text(f"Spark's classes are in {archive}")
    return 0


def _make(archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    # A rename at the end: a session that starts meanwhile sees the whole file, or none.
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        unfinished, table = Path(folder, archive.name), str(Path(folder, "table"))
        known = os.environ.get("SPARK_SUBMIT_OPTS", "")
        os.environ["SPARK_SUBMIT_OPTS"] = f'{known} "-XX:ArchiveClassesAtExit={unfinished}"'
        with session("local[2]", fast=True, settings=_QUICK) as spark:
            spark.sql(_QUERY).write.parquet(table)
            spark.read.parquet(table).toArrow()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE_S)
        if not unfinished.exists():
            raise SparkTrouble(f"this Java wrote no archive to {archive.parent} ({FOLDER} names another folder)")
        unfinished.replace(archive)


if __name__ == "__main__":
    sys.exit(main())
