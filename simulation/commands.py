"""``rejoin simulate``, ``search`` and ``gallery``: play a scenario, search for violations, list the gallery."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rejoin.journal.segments import JournalError
from rejoin.simulation.kernel import Millis, SelectiveListener
from rejoin.simulation.output import compare as comparing
from rejoin.simulation.output.page import CHART_EVENTS, ChartEvents, render
from rejoin.simulation.output.summary import show
from rejoin.simulation.output.timeline import clock
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, text_of
from rejoin.simulation.search.search import BadRange, SearchReport, parse_seeds, search_seeds

GALLERY: Final = Path(__file__).parent / "gallery"
BAR_AFTER_S: Final = 2.0

gallery_app: Final = cyclopts.App(
    name="gallery", help="Scenarios that come with rejoin, each named for the question that it answers."
)


def run(
    file: Path,
    *,
    seed: int | None = None,
    html: Path | None = None,
    journal: Path | None = None,
    compare: Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)] = (),
    quiet: Annotated[bool, Parameter(negative=())] = False,
    plain: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a scenario: its timeline, and a summary.

    Parameters
    ----------
    file
        A scenario, or the name of one in the gallery.
    seed
        Seed to use instead of the scenario's.
    html
        Write a page with a chart of partition ownership.
    journal
        Write the journal that a service would write, to a .jsonl file or a directory.
    compare
        Play variants and show what differs: KEY=VALUE,VALUE of a group, as in assignor=range,cooperative-sticky. May be
        given often; several assignors of one variant are joined with a plus.
    quiet
        Print only the summary.
    plain
        Play every heartbeat, including those that change nothing.
    """
    try:
        scenario = read_scenario(_found(file))
        if compare:
            axes = [comparing.parse_axis(text, scenario) for text in compare]
            Console().print(comparing.table(axes, comparing.compare(scenario, axes, seed)))
            return 0
        return _play(scenario, seed, html, journal, quiet=quiet, plain=plain, title=file.stem.replace("_", " "))
    except BrokenPipeError:
        raise  # no problem of a file
    except (BadScenario, JournalError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2


def _play(
    scenario: Scenario,
    seed: int | None,
    html: Path | None,
    journal: Path | None,
    *,
    quiet: bool,
    plain: bool,
    title: str,
) -> int:
    """Play a scenario, print its timeline and summary, and write what was asked for."""
    lines: list[str] = []
    marks = ChartEvents()

    def print_line(line: str) -> None:
        lines.append(line)
        if not quiet:
            print(line)

    if scenario.question and not quiet:
        print(f"{scenario.question}\n")
    with _progress(scenario.horizon) as on_progress:
        lab, summary = play(
            scenario,
            seed,
            skip=not plain,
            print_line=print_line,
            journal=journal,
            keep=html is not None,
            listeners=[SelectiveListener(marks.on_event, CHART_EVENTS)],
            on_progress=on_progress,
        )
    if html is not None:
        html.write_text(render(lab, summary, marks, title, lines), encoding="utf-8")
    if not quiet:
        print()
    print("\n".join(show(summary)))
    return 1 if summary.core_failures else 0


def search(
    *,
    seeds: str = "0:200",
    schedule: Literal["faults", "failovers"] = "faults",
    minutes: float | None = None,
    shrink: bool = True,
    into: Path | None = None,
) -> int:
    """Play random scenarios with random faults, and check that nothing happens that never may.

    Parameters
    ----------
    seeds
        Seeds to play: A:B from A up to but excluding B, or one number.
    schedule
        Kind of scenarios: faults of every kind, or mostly failovers of nodes.
    minutes
        Stop after this many minutes.
    shrink
        Shrink a failing scenario before it is shown.
    into
        Directory for the scenario and the transcript of a failure. Without it they are only printed.
    """
    try:
        first, last = parse_seeds(seeds)
    except BadRange as problem:
        print(problem, file=sys.stderr)
        return 2
    with _progress(last - first) as on_progress:
        report = search_seeds(first, last, schedule=schedule, minutes=minutes, shrink=shrink, on_progress=on_progress)
    return _report(report, into)


def _report(report: SearchReport, into: Path | None) -> int:
    if report.failure is None:
        print(
            f"{report.played} seeds, {clock(report.virtual_ms)} of virtual time, {report.steps} steps, "
            f"{report.faults} faults: nothing found"
        )
        return 0
    failure = report.failure
    print(failure.report())
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        (into / f"seed_{failure.seed}.yaml").write_text(failure.scenario_text(), encoding="utf-8")
        (into / f"seed_{failure.seed}.txt").write_text(failure.transcript, encoding="utf-8")
        print(f"written to {into}")
    return 1


@gallery_app.command(name="list")
def list_gallery() -> None:
    """List every scenario of the gallery with its question."""
    for path in sorted(GALLERY.glob("*.yaml")):
        print(f"{path.stem}\n    {read_scenario(path).question}")


@gallery_app.command(name="show")
def show_yaml(name: str) -> int:
    """Print the YAML of one scenario, to start another from."""
    try:
        print(text_of(_found(Path(name))), end="")
    except BadScenario as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


@gallery_app.command
def answer(name: str) -> int:
    """Show the question and the answer of one scenario."""
    try:
        scenario = read_scenario(_found(Path(name)))
    except BadScenario as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"{scenario.question}\n\n{' '.join(scenario.answer.split())}")
    return 0


def _found(file: Path) -> Path:
    """The file, or the scenario of the gallery that is called so. Raises :class:`BadScenario` if there is neither."""
    in_gallery = GALLERY / f"{file.name}.yaml"
    if file.exists() or file.parent != Path():
        return file
    if in_gallery.exists():
        return in_gallery
    known = sorted(path.stem for path in GALLERY.glob("*.yaml"))
    near = get_close_matches(file.stem, known, n=1)
    hint = f"is it {near[0]}?" if near else f"it has {', '.join(known)}"
    raise BadScenario(str(file), None, f"cannot be read: there is no such file, and none in the gallery; {hint}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Millis], None]]:
    """A bar on standard error for runs that take longer than two seconds."""
    began = time.monotonic()
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("playing", total=total, visible=False)

        def on_progress(done: int) -> None:
            progress.update(task, completed=done, visible=time.monotonic() - began > BAR_AFTER_S)

        yield on_progress
