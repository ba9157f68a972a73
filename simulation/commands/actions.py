"""Work and output of ``rejoin simulate``, ``search`` and ``gallery``. Their options are in ``parser``."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rejoin.console import VisibleConsole
from rejoin.error_lines import refuse
from rejoin.journal.segments import JournalError
from rejoin.output import print_text
from rejoin.protocol.printable import printable, printable_lines
from rejoin.seed_ranges import BadRange, parse_seeds
from rejoin.simulation.explore.world import WORLDS
from rejoin.simulation.kernel import Millis, SelectiveListener
from rejoin.simulation.output import compare as comparing
from rejoin.simulation.output.client_logs import LOGGED_EVENTS, ClientLogs, not_logged
from rejoin.simulation.output.page import CHART_EVENTS, ChartEvents, render
from rejoin.simulation.output.summary import show
from rejoin.simulation.output.timeline import clock
from rejoin.simulation.run import check_path, play
from rejoin.simulation.scenario.gallery import GALLERY, hint
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import BadScenario, NotAScenario, read_scenario, text_of
from rejoin.simulation.search.search import SearchReport, search_seeds

if TYPE_CHECKING:
    from rejoin.simulation.web.journal import JournalRecording

BAR_AFTER_S: Final = 2.0
LARGEST_PORT: Final = 65_535


class RefusedOption(Exception):
    """The value of an option that cannot be used; the text names both."""


@contextmanager
def _writing(option: str, path: Path | None) -> Iterator[None]:
    """Write to the path of an option. Raises :class:`RefusedOption` if that cannot be written."""
    try:
        yield
    except OSError as problem:
        if path is None or isinstance(problem, BrokenPipeError):
            raise  # no problem of a file
        expected = "expected a path in a folder that exists and that you may write to"
        raise RefusedOption(f"{option} {path}: cannot be written: {problem.strerror}; {expected}") from None


class Outputs(NamedTuple):
    """The files of one run that were asked for."""

    html: Path | None
    journal: Path | None
    client_logs: str | None
    """The library in whose words they are."""
    client_logs_into: Path


def run(
    file: Path,
    seed: int | None,
    wanted: Outputs,
    compare: tuple[str, ...],
    *,
    protocol: str | None = None,
    quiet: bool,
    plain: bool,
) -> int:
    """Play a scenario, or variants of it."""
    try:
        scenario = _read(_found(file))
        if protocol is not None:
            scenario = comparing.with_protocol(scenario, protocol)
        if compare:
            axes = [comparing.parse_axis(text, scenario) for text in compare]
            VisibleConsole(markup=False, emoji=False).print(
                comparing.table(axes, comparing.compare(scenario, axes, seed))
            )
            return 0
        _check(wanted, scenario)
        return _play(scenario, seed, wanted, quiet=quiet, plain=plain, title=file.stem.replace("_", " "))
    except BrokenPipeError:
        raise  # no problem of a file
    except (BadScenario, JournalError, RefusedOption, OSError) as problem:
        return refuse(problem)


def _check(wanted: Outputs, scenario: Scenario) -> None:
    """Raises :class:`RefusedOption` for outputs that could not be written after a long run."""
    if wanted.html is not None:
        with _writing("--html", wanted.html), wanted.html.open("ab"):
            pass
    if wanted.client_logs is not None:
        problem = not_logged(wanted.client_logs, scenario)
        if problem is not None:
            raise RefusedOption(f"--client-logs {wanted.client_logs}: {problem}")
        with _writing("--client-logs-into", wanted.client_logs_into):
            wanted.client_logs_into.mkdir(parents=True, exist_ok=True)


def _play(
    scenario: Scenario,
    seed: int | None,
    wanted: Outputs,
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
            print_text(printable(line))

    if scenario.question and not quiet:
        print_text(f"{printable_lines(scenario.question)}\n")
    listeners = [SelectiveListener(marks.on_event, CHART_EVENTS)]
    logs = None if wanted.client_logs is None else ClientLogs(wanted.client_logs)
    if logs is not None:
        listeners.append(SelectiveListener(logs.on_event, LOGGED_EVENTS))
    with _writing("--journal", wanted.journal), _progress(scenario.horizon) as on_progress:
        simulation, summary = play(
            scenario,
            seed,
            skip=not plain,
            print_line=print_line,
            journal=wanted.journal,
            keep=wanted.html is not None,
            listeners=listeners,
            on_progress=on_progress,
        )
    if logs is not None:
        with _writing("--client-logs-into", wanted.client_logs_into):
            logs.write(wanted.client_logs_into)
    if wanted.html is not None:
        with _writing("--html", wanted.html):
            wanted.html.write_text(render(simulation, summary, marks, title, lines), encoding="utf-8")
    if not quiet:
        print_text()
    print_text("\n".join(map(printable, show(summary))))
    return 1 if summary.core_failures else 0


def search(
    seeds: str,
    schedule: str,
    minutes: float | None,
    into: Path | None,
    *,
    shrink: bool,
) -> int:
    """Play random scenarios with random faults."""
    try:
        first, last = parse_seeds(seeds)
        if into is not None:
            with _writing("--into", into):
                into.mkdir(parents=True, exist_ok=True)
    except (BadRange, RefusedOption) as problem:
        return refuse(problem)
    with _progress(last - first) as on_progress:
        report = search_seeds(first, last, schedule=schedule, minutes=minutes, shrink=shrink, on_progress=on_progress)
    return _report(report, into)


def _report(report: SearchReport, into: Path | None) -> int:
    if report.failure is None:
        print_text(
            f"{report.played} seeds, {clock(report.virtual_ms)} of virtual time, {report.steps} steps, "
            f"{report.faults} faults: nothing found"
        )
        return 0
    failure = report.failure
    print_text(failure.report())
    if into is not None:
        (into / f"seed_{failure.seed}.yaml").write_text(failure.scenario_text(), encoding="utf-8")
        (into / f"seed_{failure.seed}.txt").write_text(failure.transcript, encoding="utf-8")
        print_text(f"written to {into}")
    return 1


def list_gallery() -> None:
    """List every scenario of the gallery with its question."""
    for path in sorted(GALLERY.glob("*.yaml")):
        print_text(f"{path.stem}\n    {read_scenario(path).question}")


def show_yaml(name: str) -> int:
    """Print the YAML of one scenario, to start another from."""
    try:
        print_text(text_of(_found(Path(name))), end="")
    except BadScenario as problem:
        return refuse(problem)
    return 0


def answer(name: str) -> int:
    """Show the question and the answer of one scenario."""
    try:
        scenario = read_scenario(_found(Path(name)))
    except BadScenario as problem:
        return refuse(problem)
    print_text(f"{printable_lines(scenario.question)}\n\n{printable(' '.join(scenario.answer.split()))}")
    return 0


def lab(file: Path, seed: int | None, port: int, *, browser: bool) -> int:
    """Serve the laboratory's page until Ctrl-C."""
    import asyncio  # noqa: PLC0415
    import webbrowser  # noqa: PLC0415

    from rejoin.pipeline.why.journal import findings_of_journal  # noqa: PLC0415
    from rejoin.simulation.web.journal import is_journal  # noqa: PLC0415
    from rejoin.simulation.web.server import serve  # noqa: PLC0415
    from rejoin.simulation.web.session import FirstScenario  # noqa: PLC0415

    def ready(address: str) -> None:
        print_text(f"the laboratory is at {address} (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)

    try:
        if not 0 <= port <= LARGEST_PORT:
            raise RefusedOption(f"--port {port}: expected 0 to {LARGEST_PORT}")
        if is_journal(file):
            first: FirstScenario | JournalRecording = recording_of(file)
        else:
            first = FirstScenario(*_scenario_for_lab(file), seed)
        with _listening(port):
            asyncio.run(serve(first, GALLERY, port, ready, findings_of_journal))
    except KeyboardInterrupt:
        return 0
    except (BadScenario, JournalError, RefusedOption, OSError) as problem:
        return refuse(problem)
    return 0


@contextmanager
def _listening(port: int) -> Iterator[None]:
    """A server on a port. Raises :class:`RefusedOption` if that cannot be listened on."""
    try:
        yield
    except OSError as problem:
        if not port or problem.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if problem.errno == errno.EADDRINUSE else "may not be used by this user"
        raise RefusedOption(f"--port {port}: {why}; choose another port, or leave it out to take a free one") from None


def recording_of(path: Path) -> JournalRecording:
    """The journal at a path. Raises :class:`RefusedOption`, which says what else the path may be meant for."""
    from rejoin.pipeline.drawn.logged_rows import request_logs, rows_of_logs  # noqa: PLC0415
    from rejoin.simulation.web.journal import JournalRecording  # noqa: PLC0415

    try:
        if logs := request_logs(path):
            return JournalRecording(path, rows_of_logs(logs))
        return JournalRecording(path)
    except JournalError as problem:
        raise RefusedOption(f"{problem}; {_for_lab(path)}") from None
    except OSError as problem:
        raise RefusedOption(f"{path}: cannot be read: {problem.strerror}; expected a journal") from None


def _scenario_for_lab(file: Path) -> tuple[str, str]:
    """The name and the text of a scenario. Raises :class:`BadScenario`, :class:`RefusedOption` for other files."""
    found = _found(file)
    try:
        _read(found)
    except NotAScenario as problem:
        raise RefusedOption(f"{problem}; {_for_lab(file)}") from None
    return found.stem, text_of(found)


def _read(file: Path) -> Scenario:
    """A scenario whose path, if it has one, can be followed. Raises :class:`BadScenario`."""
    scenario = read_scenario(file)
    try:
        check_path(scenario)
    except BadScenario as problem:
        raise BadScenario(str(file), None, str(problem)) from None
    return scenario


def _for_lab(path: Path) -> str:
    return (
        "rejoin lab shows a scenario, or a journal, which is a directory or a .jsonl file; for logs of brokers and "
        f"consumers there is rejoin report {path}"
    )


def _found(file: Path) -> Path:
    """The file, or the scenario of the gallery that is called so. Raises :class:`BadScenario` if there is neither."""
    if file.exists():
        return file
    if file.suffix or file.parent != Path():
        problem = "no such file; expected a scenario in YAML, or a name that rejoin gallery list shows"
        raise BadScenario(str(file), None, problem)
    in_gallery = GALLERY / f"{file.name}.yaml"
    if in_gallery.exists():
        return in_gallery
    if (WORLDS / in_gallery.name).exists():
        raise BadScenario(str(file), None, f"is a world, and no scenario; rejoin explore {file.name} plays its orders")
    raise BadScenario(str(file), None, f"no such scenario, in the gallery or as a file; {hint(file.name)}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Millis], None]]:
    """A bar on standard error for runs that take longer than two seconds."""
    began = time.monotonic()
    console = VisibleConsole(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("playing", total=total, visible=False)

        def on_progress(done: int) -> None:
            progress.update(task, completed=done, visible=time.monotonic() - began > BAR_AFTER_S)

        yield on_progress
