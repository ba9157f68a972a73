"""``rejoin sweep``: play a grid of settings and seeds, and rank the settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rejoin.console import VisibleConsole
from rejoin.error_lines import print_error, refuse
from rejoin.output import print_text
from rejoin.pipeline.commands.options import BadOption, check_least, check_master, check_out
from rejoin.pipeline.findings.formatting import span
from rejoin.pipeline.spark.java import NoJava
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.spark.trouble import SparkTrouble
from rejoin.pipeline.sweep import ranking, results
from rejoin.pipeline.sweep.code import code_version
from rejoin.pipeline.sweep.grid import MOST_RUNS, Grid, Run, read_grid
from rejoin.pipeline.sweep.runner import (
    LIGHT,
    SweepProgress,
    missing_runs,
    run_grid,
    slots_of,
    spark_player,
    task_of,
)
from rejoin.pipeline.sweep.store import SweepInUse, SweepStore
from rejoin.pipeline.sweep.tasks import play_task
from rejoin.simulation.scenario.reading import BadScenario

ESTIMATED_FROM: Final = 20
"""From so many runs on, one is played to say how long all will take."""

LINE_EVERY_S: Final = 10.0

STOPPED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


def run(
    *,
    grid: Path,
    out: Path | None,
    master: str | None,
    seeds: str | None,
    top: int,
    by: Literal["rebalances", "stopped", "unowned", "late", "twice"] | None,
    again: bool,
) -> int:
    """Play what is missing, rank and show. Options as in ``parser``; returns the exit code."""
    console = VisibleConsole(stderr=True, soft_wrap=True)
    folder = out or Path("out") / f"sweep-{grid.stem}"
    try:
        check_least("--top", top)
        check_master(master)
        if seeds is not None:
            _check_seeds(seeds)
        asked = read_grid(grid, seeds)
        if by is not None:
            asked = replace(asked, rank_by=(by,))
        check_out(folder)
        store = SweepStore(folder, code_version(), journals=asked.events, again=again)
    except (BadOption, BadScenario, SweepInUse, OSError) as problem:
        return refuse(problem)
    try:
        if store.of_other_code:
            console.print(f"{store.of_other_code} finished runs were played by other code, and are played again")
        return _swept(asked, store, master, top, console)
    except (NoJava, SparkTrouble, OSError) as problem:
        return refuse(problem)
    except KeyboardInterrupt:
        print_error(f"stopped; finished runs are in {folder}, and the same command continues from there")
        return STOPPED
    finally:
        store.close()


def _check_seeds(text: str) -> None:
    """That seeds are as this option has them; what is wrong with them is no fault of the grid's file."""
    first, colon, last = text.partition(":")
    if not first.isdecimal() or (bool(colon) and not last.isdecimal()):
        raise BadOption(f"--seeds {text}: expected a number of seeds, or A:B for A up to, and not including, B")
    number = int(last) - int(first) if colon else int(first)
    if not 1 <= number <= MOST_RUNS:
        raise BadOption(f"--seeds {text}: these are {number:,} seeds; expected between 1 and {MOST_RUNS:,}")


def _swept(grid: Grid, store: SweepStore, master: str | None, top: int, console: VisibleConsole) -> int:
    missing = missing_runs(grid, store)
    before = len({run.key for run in grid.runs()}) - len(missing)
    if missing:
        with ExitStack() as closing:
            took_s = _time_of_a_run(grid, store, missing, console)
            with console.status("starting Spark"):
                spark = closing.enter_context(session(master, fast=True, settings=LIGHT))
            console.print(estimate(len(missing), took_s, slots_of(spark)()))
            on_progress = closing.enter_context(_progress(console))
            run_grid(grid, store, spark_player(spark), slots_of(spark), on_progress)
    else:
        console.print(f"all {before} runs were finished before")
    store.compact()
    ranked = ranking.rank(grid, store)
    page = results.write(grid, store, ranked)
    lines = []
    if grid.question:
        lines.append(grid.question)
    size = f"{len(grid.points)} settings x {len(grid.seeds)} seeds"
    lines.append(size if not before else f"{size}, {before} run{'s'[: before - 1]} finished before")
    lines += [ranking.criterion(grid), f"Medians; in brackets {ranking.brackets(len(grid.seeds))} of the seeds."]
    lines += [ranking.NOT_BEATEN, ""] if len(ranked) > 1 else [""]
    print_text("\n".join([*lines, *ranking.format_answer(grid, ranked, top), "", f"tables and plots: {page}"]))
    failed = sum(setting.failed for setting in ranked)
    if failed:
        first = next(row for row in store.rows.values() if row["error"] is not None)
        print_error(f"{failed} runs failed, the first with seed {first['seed']}: {first['error']}")
    return 1 if failed else 0


def _time_of_a_run(grid: Grid, store: SweepStore, missing: list[Run], console: VisibleConsole) -> float | None:
    """Seconds that a run takes: as those that are finished took, or the first one, which is played for it and kept."""
    took = [row["wall_ms"] / 1000 for row in store.rows.values() if row.get("wall_ms")]
    if not took and len(missing) >= ESTIMATED_FROM:
        with console.status("playing one run"):
            row = play_task(task_of(grid, missing[0], store.version))
        store.add([row])
        took = [row["wall_ms"] / 1000]
    return fmean(took) if took else None


def estimate(runs: int, took_s: float | None, slots: int) -> str:
    """How long a sweep will take, in a sentence."""
    said = f"{runs} run{'s'[: runs - 1]} to play, {slots} at a time"
    if took_s is None:
        return said
    return f"{said}; one took {took_s:.2g} s, so about {span(1000 * runs * took_s / slots)}"


class ProgressLines:
    """Prints how far a sweep is: at its beginning and its end, and in between after some time."""

    def __init__(self, print_line: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._print_line = print_line
        self._clock = clock
        self._began = clock()
        self._printed_at: float | None = None

    def on_progress(self, played: SweepProgress) -> None:
        """Take the newest numbers."""
        now = self._clock()
        is_over = played.done == played.wanted
        if self._printed_at is not None and now - self._printed_at < LINE_EVERY_S and not is_over:
            return
        self._printed_at = now
        line = f"{played.done} of {played.wanted} runs"
        if played.failed:
            line += f", {played.failed} failed"
        if played.played and not is_over:
            left_s = (now - self._began) / played.played * (played.wanted - played.done)
            line += f", about {span(1000 * left_s)} left"
        self._print_line(line)


@contextmanager
def _progress(console: VisibleConsole) -> Iterator[Callable[[SweepProgress], None]]:
    """A bar on standard error, with runs a second; where that is no terminal, a line now and then."""
    if not console.is_terminal:
        yield ProgressLines(console.print).on_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("playing", total=None, rate="")

        def on_progress(played: SweepProgress) -> None:
            elapsed = progress.tasks[0].elapsed or 0.0
            rate = f"{played.played / elapsed:.1f} runs/s" if elapsed > 0.5 and played.played else ""
            failed = f", {played.failed} failed" if played.failed else ""
            progress.update(task, total=played.wanted, completed=played.done, rate=rate + failed)

        yield on_progress
