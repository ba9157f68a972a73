"""Streams on disk: what comes bit by bit, is interrupted and goes on, makes the same tables as a batch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent
from rejoin.pipeline.commands.parser import watch
from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.tables.group_tables import rebalances
from rejoin.pipeline.transactions.tables import transaction_tables
from rejoin.pipeline.watch.event_stream import drain, lines_of_journals
from rejoin.pipeline.watch.store import StoreTrouble, WatchStore
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.coordinator.service.helpers import START
from tests.pipeline import quick
from tests.pipeline.watch.services import serving
from tests.pipeline.watch.streams import SCENARIO, cut_short, journal, made, of_batch, of_stream, rows

KILLS = bool(os.environ.get("REJOIN_KILL_WATCH"))
"""Whether a process is killed in the middle of a batch, as ``make kill-watch`` has it. Else its query fails there."""


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 400
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def assert_same_tables(spark: SparkSession, store: WatchStore, folder: Path) -> set[str]:
    """Events, quarantine and rebalances of a stream are those of a batch, and each rebalance ended once.

    Returns the kinds of the rows in quarantine.
    """
    batch, stream = of_batch(spark, folder), of_stream(spark, store)
    events, quarantine = batch.events.toArrow(), rows(batch.quarantine)
    assert rows(stream.events) == rows(events)
    assert rows(stream.quarantine) == quarantine
    ended = [row["rebalance_id"] for summary in made(store) for row in summary.ended]
    computed: Any = rebalances(events)
    assert rows(pq.read_table(store.tables / "rebalances")) == rows(computed)
    wanted = [row["rebalance_id"] for row in computed.to_pylist() if row["outcome"] != "open"]
    assert sorted(ended) == sorted(wanted)
    assert len(wanted) > 10
    return {row[batch.quarantine.columns.index("kind")] for row in quarantine}


def test_segments_are_taken_in_as_they_are_closed(spark: SparkSession, tmp_path: Path) -> None:
    parts = journal(tmp_path / "journal", rows=200)
    growing, store = tmp_path / "growing", WatchStore(tmp_path / "out")
    growing.mkdir()
    for part in parts[: len(parts) // 2]:
        shutil.copy2(part, growing / part.name)
    # This one is still being written; its rows come with the segment, once it is closed.
    being_written = growing / f"{parts[-1].name}.open"
    being_written.write_bytes(parts[-1].read_bytes()[:-20])
    lines = lines_of_journals(spark, [growing], max_files=8)
    drain(lines, store)
    assert store.committed() == 1

    being_written.unlink()
    for part in parts[len(parts) // 2 :]:
        shutil.copy2(part, growing / part.name)
    text = parts[0].read_bytes().splitlines(keepends=True)
    broken = [b"not JSON\n", text[0], text[1], b"\xff\xfe\n", b'{"schema_version": 99}\n', text[2][:40]]
    (growing / "simulation-node-8-000000000001.jsonl").write_bytes(b"".join(broken))
    drain(lines, store)
    assert assert_same_tables(spark, store, growing) == {"not-json", "repeated", "encoding", "version", "half-line"}


class Ended(Exception):
    """In place of the end of a process."""


def failed(spark: SparkSession, folder: Path, store: WatchStore) -> None:
    """Take in a folder by a query that fails as it has written batches."""

    def end() -> None:
        raise Ended("a batch is written")

    with pytest.raises(StreamingQueryException, match="a batch is written"):
        cut_short(lines_of_journals(spark, [folder], max_files=8), store, end)


def killed(folder: Path, out: Path) -> None:
    """Take in a folder in a process that is killed as it has written batches, and wait until its JVM is gone, too."""
    environment = {**quick.environment(out.parent), "TMPDIR": str(out.parent)}
    command = [sys.executable, "-m", "tests.pipeline.watch.streams", str(folder), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    jvm = int(done.stdout)
    until(lambda: is_gone(jvm))


def is_gone(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_an_end_between_write_and_commit_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    parts = journal(tmp_path / "journal")
    folder, store = tmp_path / "some", WatchStore(tmp_path / "out")
    folder.mkdir()
    for part in parts[: len(parts) // 2]:
        shutil.copy2(part, folder / part.name)
    if KILLS:
        killed(folder, store.folder)
    else:
        failed(spark, folder, store)
    assert store.committed() == 0
    written = store.events / "batch_id=1"
    orphans = set(written.glob("*.parquet"))
    assert orphans
    for part in parts[len(parts) // 2 :]:
        shutil.copy2(part, folder / part.name)
    drain(lines_of_journals(spark, [folder], max_files=8), store)
    again = set(written.glob("*.parquet"))
    assert again
    assert not again & orphans
    assert_same_tables(spark, store, folder)


class Watching:
    """``rejoin watch`` as a user starts it, and what it prints."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self._printed = (folder / "printed.txt").open("w+")
        environment = {**quick.environment(folder), "TMPDIR": str(folder)}
        command = [sys.executable, "-m", "rejoin", "watch", *arguments]
        self.process = subprocess.Popen(command, env=environment, stdout=self._printed, stderr=subprocess.STDOUT)

    @property
    def printed(self) -> str:
        return Path(self._printed.name).read_text()

    def until(self, words: str, times: int = 1) -> None:
        until(lambda: self.printed.count(words) >= times or self.process.poll() is not None)
        assert self.printed.count(words) >= times, self.printed

    def stop(self) -> int:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(400)
        finally:
            self._printed.close()


TRANSFORMING = """
question: A group transforms, and one of its processes dies.
horizon: 60s
topics:
  orders: {partitions: 2, records_per_second: 2}
  results: {partitions: 1}
groups:
  transforms:
    topics: orders
    consumers: 2
    commit: transaction
    session_timeout: 6s
    transform: {to: results}
events:
  - {at: 20s, crash: {who: transforms-1}}
"""


def events_of(node: str, scenario: str = SCENARIO) -> list[tuple[Event, int]]:
    """The events of a coordinator of the scenario, with instants of today."""
    emitted: list[tuple[Event, int]] = []

    def on_event(party: Any, event: Event, now: int) -> None:
        if party.name == node and not isinstance(event, ConsumerEvent):
            emitted.append((event, START + now))

    play(scenario_from(scenario), 1, listeners=[on_event])
    return emitted


def test_a_service_is_watched_over_its_restart_and_nothing_ugly_is_printed(spark: SparkSession, tmp_path: Path) -> None:
    emitted, kept, store = events_of("node-1"), tmp_path / "journal", WatchStore(tmp_path / "out")
    finished = [number for number, (event, _) in enumerate(emitted) if event.name == "rebalance_completed"]
    # A rebalance that the service does not live to see the end of would not end in this run.
    before, half = 2, finished[1] + 1
    assert len(finished) > before
    with serving(kept) as service:
        port = service.app.port
        service.publish(emitted[:half])
        watching = Watching("--from", service.url, "--out", str(store.folder), folder=tmp_path)
        try:
            watching.until("completed, took", before)
        except BaseException:
            watching.process.kill()
            raise
    try:
        watching.until("does not answer: connection refused")
        with serving(kept, port=port) as again:
            again.publish(emitted[half:])
            watching.until("completed, took", len(finished))
        code = watching.stop()
        assert code == 0, f"exit code {code}:\n{watching.printed}"
    finally:
        watching.process.kill()
    assert "Traceback" not in watching.printed
    assert "WARN" not in watching.printed
    assert watching.printed.count("completed, took") == len(finished)
    assert "the same command continues from" in watching.printed


def test_watching_once_makes_the_tables_of_a_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    emitted, kept, out = events_of("node-1"), tmp_path / "journal", tmp_path / "out"
    emitted += [(event, at + 300_000) for event, at in events_of("node-1", TRANSFORMING)]
    with serving(kept) as service:
        service.publish(emitted)
        assert watch(from_=(service.url,), once=True, out=out) == 0
        url = service.url
    printed = capsys.readouterr().out
    assert f"watching {url}" in printed
    assert "session-expiry" in printed
    events = of_batch(spark, kept).events.toArrow().cast(EVENTS)
    made: dict[str, Any] = {"rebalances": rebalances(events), **transaction_tables(events)}
    for name, batch in made.items():
        columns = [column for column in batch.column_names if column not in ("file", "line")]
        kept_rows = rows(pq.read_table(out / "tables" / name), *columns)
        assert kept_rows == rows(batch, *columns)
        assert kept_rows or name == "readers"
    findings = pq.read_table(out / "tables" / "findings").to_pylist()
    assert findings
    assert all(row["title"].split()[0] in printed for row in findings[:3])
    # It is down now.
    assert watch(from_=(url,), once=True, out=out) == 2
    assert f"{url} does not answer: connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "give --from http://HOST:PORT, --journal FOLDER or --bootstrap-server HOST:PORT, and only one"),
        ({"from_": ("ftp://h",)}, "'ftp://h' is no address of a coordinator"),
        ({"journal": (Path("/no/such/folder"),)}, "/no/such/folder: no such folder"),
        ({"from_": ("h:1",), "every": 0.0}, "--every 0.0: expected a number of seconds above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    given: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch(**given) == 2
    assert problem in capsys.readouterr().err


def test_a_folder_has_one_writer_and_one_kind_of_input(tmp_path: Path) -> None:
    store = WatchStore(tmp_path / "out")

    def refused(kind: str, *inputs: str) -> str:
        with pytest.raises(StoreTrouble) as problem, store.locked(kind, inputs):
            pass
        return str(problem.value)

    with store.locked("services", ["http://h:1"]):
        assert "another process" in refused("services", "http://h:1")
    with store.locked("services", ["http://h:1", "http://h:2"]):
        pass
    assert "made from services http://h:1, http://h:2, not from files /j" in refused("files", "/j")
    (store.folder / "stream.json").write_text(json.dumps({"version": 99}))
    assert "version 99" in refused("services")
