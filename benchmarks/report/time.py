"""Cost of a report on little data, compared with a Spark session that writes one table and ends.

    python -m benchmarks.report.time                        # about 1,000 events, and 100,000
    python -m benchmarks.report.time --events 20000

All are processes of their own with the same settings, one after the other, several times. CPU is that of Python and
of the JVM together, which other work on the machine changes less than the seconds on the clock.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

import psutil
from cyclopts import run as run_command
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks import printer
from rejoin.pipeline.commands.report import run as run_report
from rejoin.pipeline.report.defaults import MOST_GROUPS, TITLE
from rejoin.pipeline.spark.session import session
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

SIZES: Final = (1_000, 100_000)
ROUNDS: Final = 3
APART: Final = True
"""Whether each is a process of its own, as it must be for the numbers to mean anything."""
SCENARIOS: Final = ("dynamic_rolling_deploy", "eager_scale_out", "cooperative_scale_out")
GALLERY: Final = Path(__file__).parents[2] / "simulation" / "gallery"
_RARELY: Final = "records_per_second: 0.02"
"""A group's changes are then most of its events, as in the journals of the demo."""


class Cost(NamedTuple):
    """Of one process and those below it."""

    seconds: float
    cpu: float


def journals(folder: Path, events: int) -> int:
    """Write so many events, or a few more: runs of the gallery, again under other names. The number of rows."""
    folder.mkdir(parents=True)
    rows = 0
    texts = [
        re.sub(r"records_per_second: [0-9.]+", _RARELY, (GALLERY / f"{name}.yaml").read_text()) for name in SCENARIOS
    ]
    number = 0
    while rows < events:
        path = folder / f"run-{number}.jsonl"
        play(scenario_from(texts[number % len(texts)]), number, journal=path, run_id=path.stem)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: events - rows]))
        rows += min(len(lines), events - rows)
        number += 1
    return rows


def cost(what: str, *arguments: str) -> Cost:
    """Of a function of this module, in a process of its own."""
    began = perf_counter()
    if not APART:
        return Cost(perf_counter() - began, WHAT[what](*map(Path, arguments)))
    command = [sys.executable, "-m", "benchmarks.report.time", what, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{what} failed: {done.stderr[-2000:]}")
    return Cost(perf_counter() - began, json.loads(done.stdout.splitlines()[-1]))


def empty(out: Path) -> float:
    """A session that writes one table. The CPU seconds of its process."""
    with session(fast=True, settings={}) as spark:
        spark.createDataFrame([(1, "a")], "number int, name string").write.mode("overwrite").parquet(str(out / "one"))
        return _cpu()


def report(inputs: Path, out: Path) -> float:
    """A report, as the command makes it. The CPU seconds of its process."""
    options = {"kind": None, "group": (), "groups": MOST_GROUPS, "timezone": "UTC", "master": None, "title": TITLE}
    if code := run_report(inputs=[inputs], out=out, **options):  # type: ignore[arg-type]
        raise SystemExit(code)
    return _cpu()


def _cpu() -> float:
    """CPU seconds of this process and of all below it, also of those that have ended."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in times))


WHAT: Final[dict[str, Callable[..., float]]] = {"empty": empty, "report": report}


def bench(*, events: tuple[int, ...] = (), rounds: int = ROUNDS) -> None:
    """Compare reports with the session.

    Parameters
    ----------
    events
        How many a report reads, for each report; the default is 1,000 and 100,000.
    rounds
        How often each is measured.
    """
    work = Path(tempfile.mkdtemp(prefix="rejoin-report-time-"))
    try:
        rows = [journals(work / str(size), size) for size in events or SIZES]
        empties: list[Cost] = []
        reports: dict[int, list[Cost]] = {size: [] for size in rows}
        for _ in range(rounds):
            empties.append(cost("empty", str(work)))
            for size, costs in reports.items():
                costs.append(cost("report", str(work / str(size)), str(work / "out")))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    table = Table("", "seconds", "CPU seconds", "ratio", "of CPU", box=SIMPLE_HEAD)
    table.add_row("a session that writes one table", *_medians(empties))
    for size, costs in reports.items():
        ratios = [median(one[part] / other[part] for one, other in zip(costs, empties, strict=True)) for part in (0, 1)]
        table.add_row(f"a report on {size:,} rows", *_medians(costs), *(f"{ratio:.2f}" for ratio in ratios))
    printer().print(table)


def _medians(costs: list[Cost]) -> list[str]:
    return [f"{median(column):.1f}" for column in zip(*costs, strict=True)]


def main(*, quick: bool = False) -> None:
    """For ``python -m benchmarks``. ``quick``: one round."""
    bench(events=SIZES, rounds=1 if quick else ROUNDS)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in WHAT:
        print(json.dumps(WHAT[sys.argv[1]](*map(Path, sys.argv[2:]))))
    else:
        run_command(bench)
