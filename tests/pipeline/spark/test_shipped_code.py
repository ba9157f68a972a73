"""Our functions in a process that has our packages from the archive alone, as it is sent to executors.

``make executors`` runs them on executors, each a process of its own.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark import cloudpickle

from rejoin.pipeline.reading import on_spark as of_journals
from rejoin.pipeline.reading.broker_logs import on_spark as of_logs
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.on_spark import InTask
from rejoin.pipeline.reading.pieces import pieces
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.report.tables import make_tables
from rejoin.pipeline.spark.session import package_zip
from rejoin.pipeline.sweep.runner import _Portion, task_of
from rejoin.simulation.run import play
from tests import paths
from tests.journal.few_records import of_the_gallery
from tests.pipeline.sweep.sweeps import grid

PATIENCE_S = 120
WORKER = """
import pickle, sys
from pathlib import Path
given = pickle.load(sys.stdin.buffer)
import rejoin
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.report.tables import make_tables
made = [list(task(iter([batch]))) for task, batch in given["tasks"]]
tables = dict(make_tables(read_events(find(given["inputs"]), "UTC").events, Path("tables")))
pickle.dump((rejoin.__file__, made, tables), sys.stdout.buffer)
"""
"""Unpickles what the driver sends, as Spark's worker does, and makes every table by the functions of tasks."""
TOOK = ("pid", "wall_ms", "executor")
"""Columns of a run that say where and how long it was played."""


def test_the_archive_that_executors_get_is_all_they_need(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    play(of_the_gallery("gc_pause_longer_than_the_session"), journal=journal)
    log = str(paths.RECORDED / "small" / "group-coordinator.log")
    inputs = [str(journal), log]
    what = grid()
    portion = _Portion([task_of(what, next(iter(what.runs())), "v")])
    of_files = [piece._asdict() for piece in pieces(find([str(journal)]))]
    tasks: list[tuple[InTask, pa.RecordBatch]] = [
        (portion, pa.RecordBatch.from_pylist([{"id": 0}])),
        (lambda batches: of_journals._judged(of_journals._lines(batches)), pa.RecordBatch.from_pylist(of_files)),
        (of_logs._read_files, pa.RecordBatch.from_pylist([{"path": log, "problem": None, "timezone": "UTC"}])),
    ]
    archive = package_zip(tmp_path / "packages.zip")
    installed = str(Path(pyspark.__file__).parent.parent)
    sent = cloudpickle.dumps({"tasks": tasks, "inputs": inputs})  # type: ignore[no-untyped-call]
    done = subprocess.run(
        # Without what an installation of ours adds to the path.
        [sys.executable, "-S", "-c", WORKER],
        input=sent,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(archive), installed])},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    code, made, tables = pickle.loads(done.stdout)
    assert code == str(archive / "rejoin" / "__init__.py")
    here = [list(task(iter([batch]))) for task, batch in tasks]
    assert len(here[1]) >= 1
    assert made[1:] == here[1:]
    (there,), (same,) = (pa.Table.from_batches(each[0]).to_pylist() for each in (made, here))
    assert there["status"] == "ok"
    assert {name: there[name] for name in there if name not in TOOK} == {
        name: same[name] for name in same if name not in TOOK
    }
    wanted = dict(make_tables(read_events(find(inputs), "UTC").events, tmp_path / "here"))
    assert wanted["rebalances"].num_rows > 2
    assert tables == wanted
