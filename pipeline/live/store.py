"""The folder of a stream: batches that are written once and for all, and a source that follows them.

    OUT/events/batch_id=N/    events and broken lines as they came, as ``journals.parse`` gives them
    OUT/live/batch_id=N/     what became of the groups, see ``live.LIVE``
    OUT/tables/NAME/         the tables of all events so far, see ``pipeline.incremental``
    OUT/state/               what those need of the events before
    OUT/checkpoints/         how far Spark is

A batch is written over what an interrupted attempt left of it, and counts once Spark has committed it; so each event
is there once, whenever the program was killed. Readers see committed batches only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from rejoin.journal.file_lock import sole_writer
from rejoin.pipeline.schemas import EVENTS
from rejoin.pipeline.tables.groups.rebalance_events import FOLLOWED, READS

BATCH_ROWS: Final = StructType(
    [*EVENTS.fields, *(StructField(name, StringType()) for name in ("kind_", "reason_", "text_"))]
)
"""Rows of ``OUT/events``."""

MOST_BATCHES: Final = 64
"""Batches that a follower reads at a time."""

STREAM: Final = "stream.json"
"""The file that marks a folder as one of a stream."""
_VERSION: Final = 2
"""Of the folder. Version 1 kept its batches in ``facts``."""
_CHECKPOINTS: Final = {"live": "live-2"}
"""Names of checkpoints that differ from their query's: what an earlier version kept there has another form.

Such a query takes in all events of the folder once more.
"""
_BATCH_ID: Final = StructField("batch_id", IntegerType())
_FOLLOWED_SCHEMA: Final = StructType([EVENTS[name] for name in READS])

AfterWrite = Callable[[str, int], None]
"""Called with the name of a query and the number of a batch that is written and not yet committed."""


class StoreTrouble(Exception):
    """The folder cannot be used as it is; the text says why and what to do."""


class WatchStore:
    """A folder of a stream. ``kind`` is what it is fed with, ``inputs`` from where; a folder keeps to one kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.events = self.folder / "events"
        self.live = self.folder / "live"
        self.tables = self.folder / "tables"

    def checkpoint(self, query: str) -> Path:
        """Where Spark keeps how far a query is."""
        return self.folder / "checkpoints" / _CHECKPOINTS.get(query, query)

    def committed(self, query: str) -> int:
        """The newest batch of a query that counts; -1 if there is none."""
        return committed(self.checkpoint(query))

    @contextmanager
    def held(self, kind: str, inputs: Sequence[str]) -> Iterator[None]:
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
        schema, until = StructType([*BATCH_ROWS.fields, _BATCH_ID]), self.committed("events")
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


def committed(checkpoint: Path) -> int:
    """The newest batch that a checkpoint has committed; -1 if there is none."""
    try:
        names = os.listdir(checkpoint / "commits")
    except FileNotFoundError:
        return -1
    return max((int(name) for name in names if name.isdecimal()), default=-1)


@dataclass
class Batch(InputPartition):
    """One batch of events."""

    path: str


class BatchesSource(DataSource):
    """Committed batches of events, those that matter for rebalances, as a stream of Spark's (``rejoin-batches``).

    Options: ``events``, the folder of the batches; ``checkpoint``, that of the query which writes them.
    """

    @classmethod
    def name(cls) -> str:
        return "rejoin-batches"

    def schema(self) -> StructType:
        return _FOLLOWED_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        raise NotImplementedError("these are read as a table with WatchStore.read_events")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return BatchesStreamReader(self.options)


class BatchesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the batches: an offset is the number of the last one read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._events = options["events"]
        self._checkpoint = Path(options["checkpoint"])
        self._frozen: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"batch": -1}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._frozen = committed(self._checkpoint)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        head = committed(self._checkpoint) if self._frozen is None else self._frozen
        return {"batch": max(start["batch"], min(head, start["batch"] + MOST_BATCHES))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        batches = range(start["batch"] + 1, end["batch"] + 1)
        return [Batch(str(Path(self._events, f"batch_id={batch}"))) for batch in batches]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Batch)
        wanted = to_arrow_schema(_FOLLOWED_SCHEMA)
        for path in sorted(Path(partition.path).glob("*.parquet")):
            table = pq.ParquetFile(path).read(columns=[*READS, "kind_"])
            matters = pc.and_(pc.is_in(table["event"], pa.array(FOLLOWED)), pc.is_null(table["kind_"]))
            kept = table.filter(matters).select(list(READS)).cast(wanted)
            yield from kept.to_batches()
