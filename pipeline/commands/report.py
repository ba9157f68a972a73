"""``rejoin report``: from journals and brokers' logs to tables, findings and a page."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.markup import escape

from rejoin.console import VisibleConsole
from rejoin.error_lines import print_error, refuse
from rejoin.output import print_aside
from rejoin.pipeline.commands.interrupts import STOPPED, Interrupts, interrupts, logging_disabled
from rejoin.pipeline.commands.options import BadOption, check_least, check_master, check_out
from rejoin.pipeline.commands.standard_input import with_standard_input, without_copy
from rejoin.pipeline.findings.annotations import BadAnnotations, read_annotations
from rejoin.pipeline.instants import WHOLE, BadWindow, LogWindow
from rejoin.pipeline.kafka_cluster.names import ABOUT
from rejoin.pipeline.reading.inputs import InputFile, NoInput, must_name_groups
from rejoin.pipeline.report.console import show
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.page.findings import STEPPED
from rejoin.pipeline.report.parquet_tables import OnStep
from rejoin.pipeline.report.run import PAGE, TABLES, is_small, make_report, other_files, to_read
from rejoin.pipeline.spark.java import NoJava
from rejoin.pipeline.spark.trouble import SparkTrouble
from rejoin.pipeline.watch.names import STREAM

EVERY_SECONDS: Final = 10.0
"""Where standard error is a file, progress is a line this often."""


def run(
    *,
    inputs: list[Path],
    out: Path,
    kind: Literal["journal", "parquet", "log"] | None,
    group: tuple[str, ...],
    groups: int,
    timezone: str,
    master: str | None,
    title: str,
    annotations: tuple[Path, ...] = (),
    window: tuple[str | None, str | None] = WHOLE,
) -> int:
    """Make the report and show its findings. Options as in ``parser``; returns the exit code."""
    with logging_disabled(), interrupts() as interrupted, ExitStack() as stack:
        try:
            inputs = stack.enter_context(with_standard_input(inputs))
            read = _checked(inputs, out, kind, groups, timezone, master)
            _check_can_be_cut(LogWindow(*window), read)
            around = read_annotations(annotations)
            options: dict[str, Any] = {"kind": kind, "groups": group, "most_groups": groups, "timezone": timezone}
            options |= {"title": title, "annotations": around, "window": LogWindow(*window)}
            with _progress(interrupted) as on_step:
                make = _made if master is None and is_small(read) else partial(_made_on_spark, interrupted, master)
                made = make(inputs, out, on_step=on_step, **options)
            interrupted.check()
        except (
            BadOption,
            BadAnnotations,
            BadWindow,
            NoInput,
            NoJava,
            SparkTrouble,
            OSError,
            KeyboardInterrupt,
        ) as problem:
            if interrupted.came or isinstance(problem, KeyboardInterrupt):
                interrupted.ignore()
                print_error(f"stopped; the report in {out} is incomplete")
                return STOPPED
            return refuse(without_copy(problem))
    stepped = out / STEPPED
    show(
        made,
        VisibleConsole(highlight=False),
        page=out / PAGE,
        steps=stepped if stepped.exists() else None,
        tables=out / TABLES,
    )
    return 0


def _checked(
    inputs: Sequence[Path], out: Path, kind: str | None, groups: int, timezone: str, master: str | None
) -> list[InputFile]:
    """The files to read, after all that can be found wrong without Spark."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise BadOption(
            f"--timezone {timezone}: there is no such zone; expected a name such as Europe/Berlin"
        ) from None
    if not inputs:
        raise NoInput("nothing to read: name journals, brokers' logs, or directories of them")
    check_least("--groups", groups)
    check_master(master)
    read = to_read(inputs, out, kind)
    check_out(out, file=PAGE, below=TABLES)
    _check_is_for_a_report(inputs, out)
    must_name_groups(read)
    return read


def _check_can_be_cut(window: LogWindow, read: Sequence[InputFile]) -> None:
    other = next((each for each in read if each.kind != "log"), None)
    if str(window) and other is not None:
        raise BadOption(f"{window}: only logs can be cut, and {other.path} is not a log; give logs alone")


def _check_is_for_a_report(inputs: Sequence[Path], out: Path) -> None:
    """That the folder is neither the input nor one of something else, whose tables would stay beside the new ones."""
    if any(os.path.realpath(each) == os.path.realpath(out) and each.is_dir() for each in inputs):
        raise BadOption(f"--out {out}: is an input of this report; give another folder, such as {out / 'report'}")
    watch = next((out / each for each in (STREAM, ABOUT) if (out / each).exists()), None)
    if watch is not None:
        raise BadOption(f"--out {out}: belongs to a rejoin watch, which keeps {watch.name} there; give another folder")
    below, beside = other_files(out)
    if below:
        raise BadOption(
            f"--out {out}: {out / TABLES} holds {_some(below)}, which no report writes; give another folder, or move it"
        )
    if beside:
        print_error(f"--out {out}: other files are there too and stay as they are: {_some(beside)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


def _made_on_spark(
    interrupted: Interrupts, master: str | None, inputs: Sequence[Path], out: Path, *, on_step: OnStep, **options: Any
) -> Report:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 (not for little data)
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from rejoin.pipeline.spark.session import session, trouble  # noqa: PLC0415

    on_step("starting Spark")
    with session(master) as spark:
        interrupted.take()
        try:
            return _made(inputs, out, spark=spark, on_step=on_step, **options)
        except (PySparkException, Py4JError) as problem:
            raise trouble("Spark did not finish the report", problem) from problem


def _made(inputs: Sequence[Path], out: Path, **options: Any) -> Report:
    try:
        return make_report(inputs, out, **options)
    except OSError as problem:
        raise BadOption(f"--out {out}: the report could not be written: {problem}") from problem


@contextmanager
def _progress(interrupted: Interrupts) -> Iterator[OnStep]:
    """Progress on standard error: one line, drawn over and over, on a terminal; a line now and then in a file.

    Each step begins with a check for an interrupt.
    """
    console = VisibleConsole(stderr=True)
    began = time.monotonic()

    def line(step: str) -> str:
        return f"{time.monotonic() - began:3.0f} s  {step}"

    if console.is_terminal:
        with console.status("") as status:

            def update(step: str) -> None:
                interrupted.check()
                status.update(f"[dim]{escape(line(step))}[/]")

            yield update
        return
    written = began

    def write(step: str) -> None:
        nonlocal written
        interrupted.check()
        if time.monotonic() - written >= EVERY_SECONDS:
            written = time.monotonic()
            print_aside(line(step))

    yield write
