"""The folder of a stream: batches of events that are written once and for all, and the tables of them.

    OUT/events/batch_id=N/    events and broken lines as they came, as ``journals.parse`` gives them
    OUT/tables/NAME/          the tables of all events so far, see ``pipeline.incremental``
    OUT/state/                the earlier events that later rows depend on
    OUT/checkpoints/events/   Spark's progress

A batch is written over what an interrupted attempt left of it, and counts once Spark has committed it; so each event
is there once, whenever the program was killed. Readers see committed batches only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from rejoin.journal.file_lock import sole_writer
from rejoin.pipeline.reading.journals import JUDGED
from rejoin.pipeline.watch.names import STREAM

BATCH_ROWS: Final = from_arrow_schema(JUDGED)
"""Rows of ``OUT/events``."""

_VERSION: Final = 2
"""Of the folder. Version 1 kept its batches in ``facts``."""
_BATCH_ID: Final = StructField("batch_id", IntegerType())


class StoreTrouble(Exception):
    """The folder cannot be used as it is; the text says why and what to do."""


class WatchStore:
    """A folder of a stream. ``kind`` is what it is fed with, ``inputs`` from where; a folder keeps to one kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.events = self.folder / "events"
        self.tables = self.folder / "tables"
        self.checkpoint = self.folder / "checkpoints" / "events"
        """Spark's progress."""

    def committed(self) -> int:
        """The newest batch that Spark has committed; -1 if there is none."""
        try:
            names = os.listdir(self.checkpoint / "commits")
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    @contextmanager
    def locked(self, kind: str, inputs: Sequence[str]) -> Iterator[None]:
        """Be the only writer here. Raises StoreTrouble if another process is, or the folder is unfit."""
        with sole_writer(self.folder, StoreTrouble):
            self._check(kind, inputs)
            yield

    def _check(self, kind: str, inputs: Sequence[str]) -> None:
        path = self.folder / STREAM
        mine = {"version": _VERSION, "kind": kind, "inputs": list(inputs)}
        if not path.exists():
            if any(self.folder.glob("*.parquet")) or (self.folder / "tables").exists():
                raise StoreTrouble(f"{self.folder} holds something else already; give an empty folder")
            write_json(path, mine)
            return
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise StoreTrouble(f"{path} is no JSON; the folder is damaged, give another one") from None
        if known.get("version") != _VERSION:
            raise StoreTrouble(f"{path} is of version {known.get('version')}, expected {_VERSION}; give another folder")
        if known.get("kind") != kind or (kind == "files" and known.get("inputs") != mine["inputs"]):
            raise StoreTrouble(
                f"{self.folder} was made from {known.get('kind')} {', '.join(known.get('inputs', []))}, not from "
                f"{kind} {', '.join(inputs)}; give another folder"
            )
        write_json(path, mine)

    def read_events(self, spark: SparkSession) -> DataFrame:
        """All rows of the batches that count, with their ``batch_id``."""
        schema, until = StructType([*BATCH_ROWS.fields, _BATCH_ID]), self.committed()
        if until < 0:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(str(self.events)).where(fn.col("batch_id") <= until)


def write_batch(rows: DataFrame, folder: Path, batch_id: int) -> None:
    """Write a batch over whatever there is of it."""
    rows.write.mode("overwrite").parquet(str(folder / f"batch_id={batch_id}"))


def write_json(path: Path, value: Any) -> None:
    """Write a file whole or not at all."""
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(json.dumps(value), encoding="utf-8")
    aside.replace(path)
