"""``rejoin report``: from journals and brokers' logs to tables, findings and a page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cyclopts import Parameter
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from rich.console import Console

from rejoin.pipeline.commands.options import BadOption, check_least, check_master, check_out
from rejoin.pipeline.reading.inputs import NoInput
from rejoin.pipeline.report.collect import MOST_GROUPS
from rejoin.pipeline.report.console import show
from rejoin.pipeline.report.run import PAGE, QUICK, TABLES, TITLE, make_report, to_read
from rejoin.pipeline.spark.java import NoJava
from rejoin.pipeline.spark.session import SparkTrouble, session, trouble

SMALL_BYTES: Final = 16 * 2**20
"""Inputs up to this size are best done with a session that starts quickly and compiles nothing."""
STOPPED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


def report(
    inputs: list[Path],
    /,
    *,
    out: Path,
    kind: Literal["journal", "parquet", "log"] | None = None,
    group: Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)] = (),
    groups: int = MOST_GROUPS,
    timezone: str = "UTC",
    master: str | None = None,
    title: str = TITLE,
) -> int:
    """Explain every rebalance: tables in Parquet, findings in the terminal, and one HTML page.

    Parameters
    ----------
    inputs
        Files and directories: journals (*.jsonl), Parquet of events, brokers' server.log and kafka-request.log, packed
        with gzip or not. The kind of each file follows from its content.
    out
        Folder for report.html and tables/. An earlier report there is replaced.
    kind
        Read all files as this kind, whatever their content.
    group
        Show this group on the page; may be given several times. The default is the worst groups.
    groups
        Number of groups with a chart on the page.
    timezone
        Time zone of the brokers' logs, such as Europe/Berlin.
    master
        Spark master: local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT; all cores of this machine
        without it.
    title
        Title of the page.
    """
    console = Console(highlight=False)
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        print(f"--timezone {timezone}: there is no such zone; expected a name such as Europe/Berlin", file=sys.stderr)
        return 2
    try:
        if not inputs:
            raise NoInput("nothing to read: name journals, brokers' logs, or directories of them")
        check_least("--groups", groups)
        check_master(master)
        read = to_read(inputs, out, kind)
        check_out(out, file=PAGE, below=TABLES)
        small = master is None and sum(found.size for found in read) <= SMALL_BYTES
        with _step_printer() as on_step:
            on_step("starting Spark")
            with session(master, fast=small, settings=QUICK if small else None) as spark:
                try:
                    made = make_report(
                        spark,
                        inputs,
                        out,
                        kind=kind,
                        groups=group,
                        most_groups=groups,
                        timezone=timezone,
                        title=title,
                        on_step=on_step,
                    )
                except (PySparkException, Py4JError) as problem:
                    raise trouble("Spark did not finish the report", problem) from problem
    except (BadOption, NoInput, NoJava, SparkTrouble, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return STOPPED
    show(made, console, page=out / PAGE, tables=out / TABLES)
    return 0


@contextmanager
def _step_printer() -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    began = time.monotonic()
    with console.status("") as status:

        def on_step(what: str) -> None:
            status.update(f"[dim]{time.monotonic() - began:3.0f} s[/]  {what}")

        yield on_step
