"""Events as a stream: from running services or from journals, into a :class:`~rejoin.pipeline.watch.store.WatchStore`.

One query reads lines, separates events from broken lines and writes both. Tables, the rebalances among them, are made
of committed batches by :mod:`rejoin.pipeline.watch.tables`, so none knows more than is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from rejoin.pipeline.reading.on_spark import parse
from rejoin.pipeline.reading.pieces import Piece
from rejoin.pipeline.reading.text_lines import batches_of
from rejoin.pipeline.schemas import LINES
from rejoin.pipeline.watch.source import MAX_ROWS, NAME, RejoinSource
from rejoin.pipeline.watch.store import WatchStore, write_batch

MAX_FILES: Final = 100
"""Segments of a batch."""

SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a session that suit small batches, of which compiling the plan takes longer than running it."""

AfterWrite = Callable[[int], None]
"""Called with the number of a batch that is written and not yet committed."""

_TRIES: Final = 10
_CLOSED: Final = "*-" + 12 * "[0-9]" + ".jsonl"
"""A closed segment, as ``journal.segments`` names it. It does not grow any more: a file that grows would be read once,
and its later lines never."""

_FILES: Final = "path string, modificationTime timestamp, length long, content binary"


def lines_of_services(
    spark: SparkSession, urls: Sequence[str], *, max_rows: int = MAX_ROWS, down: str = "fail", lost: str = "skip"
) -> DataFrame:
    """The events of running services as a stream of lines; options as in :mod:`rejoin.pipeline.watch.source`."""
    spark.dataSource.register(RejoinSource)
    options = {"from": " ".join(urls), "maxRowsPerBatch": str(max_rows), "down": down, "lost": lost}
    return spark.readStream.format(NAME).options(**options).load()


def lines_of_journals(spark: SparkSession, folders: Iterable[Path], *, max_files: int = MAX_FILES) -> DataFrame:
    """The closed segments below folders, each once, as a stream of lines; segments that are open are left alone."""
    streams = [
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("pathGlobFilter", _CLOSED)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", max_files)
        .load(os.path.realpath(folder))
        .select("path", "length")
        for folder in folders
    ]
    return reduce(DataFrame.unionAll, streams).mapInArrow(_read_segments, from_arrow_schema(LINES))


def keep_events(
    lines: DataFrame, store: WatchStore, *, after_write: AfterWrite = lambda _: None, every_seconds: float | None = None
) -> StreamingQuery:
    """Start the query that writes events down. Without ``every_seconds`` it takes what is there and ends."""

    def write(rows: DataFrame, batch_id: int) -> None:
        write_batch(rows, store.events, batch_id)
        after_write(batch_id)

    writer = parse(lines).writeStream.queryName("events").option("checkpointLocation", str(store.checkpoint))
    if every_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every_seconds} seconds")
    return writer.foreachBatch(write).start()


def drain(lines: DataFrame, store: WatchStore) -> None:
    """Take in what is there, and return."""
    for left in range(_TRIES, 0, -1):
        try:
            keep_events(lines, store).awaitTermination()
            return
        except StreamingQueryException as problem:
            if left == 1 or not may_pass(problem):
                raise


def may_pass(problem: BaseException) -> bool:
    """Whether a query failed over a machine that is too busy: Spark gives a new Python ten seconds to start."""
    return "Python worker failed to connect back" in str(problem)


def _read_segments(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            path = "/" + row["path"].removeprefix("file:").lstrip("/")
            yield from batches_of(Piece(path, 0, row["length"], True))
