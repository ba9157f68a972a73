"""``rejoin watch``: follow running services, and keep rebalances and findings up to date."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.live import Live

from rejoin.console import VisibleConsole
from rejoin.error_lines import print_error, refuse
from rejoin.pipeline.commands.interrupts import Interrupts, interrupts, logging_disabled
from rejoin.pipeline.commands.options import BadOption, check_master, check_out, stopped
from rejoin.pipeline.spark.java import NoJava
from rejoin.pipeline.spark.session import aside, session, trouble
from rejoin.pipeline.spark.trouble import SparkTrouble
from rejoin.pipeline.watch.dashboard import Dashboard
from rejoin.pipeline.watch.event_stream import (
    SETTINGS,
    drain,
    keep_events,
    lines_of_journals,
    lines_of_services,
    may_pass,
)
from rejoin.pipeline.watch.service import NotAService, ServiceClient, ServiceDown, Standing, normal
from rejoin.pipeline.watch.shown_rows import finding, line
from rejoin.pipeline.watch.store import StoreTrouble, WatchStore
from rejoin.pipeline.watch.tables import TableSummary, WatchTables

_LONGEST_PAUSE_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 0.25
_LONGEST_END_SECONDS: Final = 30.0
_ASK_SECONDS: Final = 2.0
_SOURCE_PROBLEM: Final = re.compile(r"pipeline\.watch\.service\.(ServiceDown|NotAService|EventsGone): (.+)")
"""The data source's own message, within Spark's."""

Stream = Callable[[SparkSession], DataFrame]


class _Stopping(Exception):
    """The tables are no longer wanted."""


class StreamFailure(Exception):
    """The stream cannot go on; the text says why."""


def run(
    *,
    from_: tuple[str, ...],
    journal: tuple[Path, ...],
    out: Path | None,
    once: bool,
    every: float,
    lost: Literal["skip", "fail"],
    master: str | None,
) -> int:
    """Follow until stopped, or once. Options as in ``parser``; returns the exit code."""
    console, errors = (
        VisibleConsole(highlight=False),
        VisibleConsole(stderr=True, soft_wrap=True, highlight=False, markup=False),
    )
    try:
        urls = _checked(from_, journal, out, every, master)
    except (BadOption, ValueError) as problem:
        return refuse(problem)
    with logging_disabled(), interrupts() as interrupted:
        try:
            with ExitStack() as closing, _said(interrupted, out):
                folder = out or Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="rejoin-watch-")))
                store = WatchStore(folder)
                inputs = urls or sorted(str(each.resolve()) for each in journal)
                closing.enter_context(store.locked("services" if urls else "files", inputs))
                if urls and once:
                    _ask_all(urls)
                with errors.status("starting Spark"):
                    spark = closing.enter_context(session(master, fast=True, settings=SETTINGS, app="rejoin-watch"))
                interrupted.take()
                follower = _Watch(spark, store, urls, inputs, journal, every, lost, console, errors)
                if once:
                    follower.once()
                else:
                    follower.on_and_on(interrupted)
        except KeyboardInterrupt:
            return 0
        except (StoreTrouble, NoJava, SparkTrouble, ServiceDown, NotAService, StreamFailure, OSError) as problem:
            return refuse(problem)
    if out is not None:
        console.print(f"\ntables  {store.tables}", soft_wrap=True)
    return 0


@contextmanager
def _said(interrupted: Interrupts, out: Path | None) -> Iterator[None]:
    """Say that it was interrupted. What else failed after that failed because of it, and is KeyboardInterrupt too."""
    try:
        yield
    except BaseException as problem:
        if not (interrupted.came or isinstance(problem, KeyboardInterrupt)):
            raise
        interrupted.ignore()
        print_error(stopped(out))
        raise KeyboardInterrupt from None


def _checked(
    urls: Sequence[str], folders: Sequence[Path], out: Path | None, every: float, master: str | None
) -> list[str]:
    """The services to follow, each once; none where folders are followed. Raises BadOption and ValueError."""
    found = list(dict.fromkeys(normal(url) for url in urls))
    if bool(found) == bool(folders):
        raise ValueError("give --from http://HOST:PORT, --journal FOLDER or --bootstrap-server HOST:PORT, and only one")
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise ValueError(f"{missing[0]}: no such folder; expected one in which journals are written")
    logged = [each for each in folders if (each / "kafka-request.log").is_file()]
    if logged:
        raise ValueError(
            f"{logged[0]}: the journal of rejoin proxy, which is a request log; follow it with rejoin watch"
            f" --bootstrap-server HOST:PORT --log {logged[0] / 'kafka-request.log'}, or read it with rejoin why"
        )
    if not every > 0:
        raise ValueError(f"--every {every}: expected a number of seconds above 0")
    check_master(master)
    if out is not None:
        check_out(out)
    return found


class _Watch:
    """One call of the command."""

    def __init__(
        self,
        spark: SparkSession,
        store: WatchStore,
        urls: Sequence[str],
        inputs: Sequence[str],
        folders: Sequence[Path],
        every: float,
        lost: str,
        console: VisibleConsole,
        errors: VisibleConsole,
    ) -> None:
        self._spark = spark
        self._store = store
        self._urls = urls
        self._folders = folders
        self._every = every
        self._lost = lost
        self._console = console
        self._errors = errors
        self._board = Dashboard(f"watching {', '.join(inputs)}")

    def once(self) -> None:
        """Take in what there is."""
        with self._errors.status("reading") as status, _source_problems():
            drain(self._lines("fail"), self._store)
            tables = WatchTables(self._store)
            for made in tables.updates(status.update, everything=True):
                self._board.take(made)
            tables.close()
        self._console.print(self._board.shown())

    def on_and_on(self, interrupted: Interrupts) -> None:
        """Follow until interrupted."""
        with ExitStack() as closing:
            maker = _Maker(self._store)
            closing.callback(aside, maker.stop, _LONGEST_END_SECONDS)
            events = _RestartingQuery(lambda: keep_events(self._lines("wait"), self._store, every_seconds=self._every))
            closing.callback(aside, events.stop)
            show: Callable[[], None] | None = None
            if self._console.is_terminal:
                screen = Live(console=self._console, get_renderable=self._board.shown, auto_refresh=False)
                show = closing.enter_context(screen).refresh
            ask_at, asked = 0.0, list[str]()
            while True:
                interrupted.check()
                notes = events.look()
                if time.monotonic() >= ask_at:
                    asked = list(_asked(self._urls))
                    ask_at = time.monotonic() + _ASK_SECONDS
                self._show(show, [*asked, *notes], maker)
                time.sleep(_LOOK_SECONDS)

    def _show(self, show: Callable[[], None] | None, notes: list[str], maker: _Maker) -> None:
        maker.ask_for(self._store.committed())
        for made in maker.taken():
            if show is None:
                self._print(made)
            self._board.take(made)
        if show is None:
            for note in notes:
                if note not in self._board.notes:
                    print_error(note)
            self._board.notes = notes
        else:
            self._board.notes = [*notes, *maker.notes()]
            show()

    def _print(self, made: TableSummary) -> None:
        """Print the rebalances that ended, and the findings that are new."""
        for row in made.ended:
            self._console.print(line(row), soft_wrap=True)
        known = {(row["run_id"], row["group_id"], row["finding"], row["title"]) for row in self._board.findings}
        for row in made.findings:
            if (row["run_id"], row["group_id"], row["finding"], row["title"]) not in known:
                self._console.print(finding(row))

    def _lines(self, down: str) -> DataFrame:
        if self._urls:
            return lines_of_services(self._spark, self._urls, down=down, lost=self._lost)
        return lines_of_journals(self._spark, self._folders)


class _RestartingQuery:
    """A query that is started again, after a while, when a service was gone in the middle of a range."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._query: StreamingQuery | None = None
        self._failures = 0
        self._again_at = 0.0
        self._note = ""

    @property
    def is_up(self) -> bool:
        """Whether the query has started and reads."""
        query = self._query
        return query is not None and query.isActive and not query.status["message"].startswith("Initializing")

    def look(self) -> list[str]:
        """Start it if it does not run; what is wrong with it, if anything. Raises Stopped if that will not pass."""
        if self._query is not None and not self._query.isActive:
            self._failed(self._query)
        if self._query is None and time.monotonic() >= self._again_at:
            with _source_problems():
                self._query = self._start()
        elif self._note and self.is_up and self._query is not None and self._query.lastProgress is not None:
            self._note, self._failures = "", 0
        return [self._note] if self._note else []

    def stop(self) -> None:
        """End it; what it has not committed is done again the next time."""
        if self._query is not None:
            self._query.stop()

    def _failed(self, query: StreamingQuery) -> None:
        self._query = None
        problem = query.exception()
        if problem is None:
            return
        kind, words = _words(problem)
        busy = may_pass(problem)
        if kind != "ServiceDown" and not busy:
            raise StreamFailure(words)
        seconds = min(_LONGEST_PAUSE_SECONDS, 2.0**self._failures)
        self._failures = 0 if busy else self._failures + 1
        self._again_at = time.monotonic() + seconds
        self._note = "this machine is busy; restarting Spark" if busy else f"{words}; retrying"


class _Maker:
    """Brings the tables up to date, beside the stream, whenever there are new events and the last time is over."""

    def __init__(self, store: WatchStore) -> None:
        self._tables = WatchTables(store)
        self._wanted = -1
        self._made: deque[TableSummary] = deque()
        self._busy = ""
        self._problem = ""
        self._asked = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="tables", daemon=True)
        self._thread.start()

    def ask_for(self, batch: int) -> None:
        """Have the tables made up to a batch."""
        if batch > self._wanted:
            self._wanted = batch
            self._asked.set()

    def taken(self) -> Iterator[TableSummary]:
        """Summaries since the last call."""
        while self._made:
            yield self._made.popleft()

    def notes(self) -> list[str]:
        """A note for the dashboard."""
        return [note for note in (self._busy, self._problem) if note]

    def stop(self) -> None:
        """Make no more, and wait for what is being made: a thread inside a library when Python ends would abort it."""
        self._stopping = True
        self._asked.set()
        self._thread.join(_LONGEST_END_SECONDS)

    def _work(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._stopping:
                self._tables.close()
                return
            began = time.monotonic()
            try:
                for made in self._tables.updates(self._on_step):
                    self._made.append(made)
                self._problem = ""
            except Exception as problem:
                if self._stopping:
                    return
                self._problem = str(trouble("the tables could not be made", problem))
            self._busy = ""
            # The stream comes first: half of the time is its own.
            self._rest(time.monotonic() - began)

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stopping:
            time.sleep(_LOOK_SECONDS)

    def _on_step(self, words: str) -> None:
        if self._stopping:
            raise _Stopping
        self._busy = words


def _ask_all(urls: Sequence[str]) -> None:
    for url in urls:
        _standing(url)


def _asked(urls: Sequence[str]) -> Iterator[str]:
    """Problems of the services now."""
    for url in urls:
        try:
            _standing(url)
        except ServiceDown as down:
            yield f"{down}; retrying"
        except NotAService as problem:
            yield str(problem)


def _standing(url: str) -> Standing:
    service = ServiceClient(url, timeout_seconds=2.0)
    try:
        return service.standing()
    finally:
        service.close()


@contextmanager
def _source_problems() -> Iterator[None]:
    """Turn what Spark says of a failed stream into what its source said."""
    try:
        yield
    except (SparkTrouble, StoreTrouble, OSError):
        raise
    except Exception as problem:
        raise StreamFailure(_words(problem)[1]) from problem


def _words(problem: Exception) -> tuple[str, str]:
    """The error of the source within an error of Spark's, and its words."""
    found = _SOURCE_PROBLEM.search(str(problem))
    if found is not None:
        return found[1], found[2].strip()
    return "", str(trouble("the stream failed", problem))
