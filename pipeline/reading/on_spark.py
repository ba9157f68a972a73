"""Reads journals and tables of events on Spark: its tasks call the functions of ``reading.journals``.

Spark's own reader of text gives no line numbers and does not say where bytes were no UTF-8. This one reads in Python,
in parallel, large files in several pieces, and hands Spark whole batches of Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.journals import IDENTITY, JUDGED, each_once, events_of_lines, events_of_table, judged
from rejoin.pipeline.reading.pieces import PIECE_BYTES, Piece, pieces
from rejoin.pipeline.reading.text_lines import batches_of
from rejoin.pipeline.schemas import EVENTS, LINES, QUARANTINE
from rejoin.pipeline.tables.on_spark import conform

_PIECES: Final = "path string, start long, end long, closed boolean"

InTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Bronze(NamedTuple):
    """Rows that were read: events (:data:`EVENTS`), and lines that could not be used (:data:`QUARANTINE`)."""

    events: DataFrame
    quarantine: DataFrame


def read_lines(spark: SparkSession, files: Iterable[InputFile], *, piece_bytes: int = PIECE_BYTES) -> DataFrame:
    """The lines of files, as :data:`pipeline.schemas.LINES`. A half last line is left out where a writer is at work."""
    return _of_pieces(spark, files, _lines, LINES, piece_bytes)


def read_journals(spark: SparkSession, files: Iterable[InputFile]) -> DataFrame:
    """The lines of journals, judged where they are read. As :func:`parse` of :func:`read_lines`."""
    return _of_pieces(spark, files, lambda pieces: _judged(_lines(pieces)), JUDGED, PIECE_BYTES)


def _of_pieces(
    spark: SparkSession, files: Iterable[InputFile], read: InTask, schema: pa.Schema, piece_bytes: int
) -> DataFrame:
    cut = pieces(files, piece_bytes)
    tasks = max(1, min(len(cut), 4 * spark.sparkContext.defaultParallelism))
    # Round robin by hand: Spark's own repartition would shuffle by a random start.
    dealt = [cut[first::tasks] for first in range(tasks)]
    rows = spark.sparkContext.parallelize(dealt, tasks).flatMap(lambda pieces: pieces)
    return spark.createDataFrame(rows, _PIECES).mapInArrow(read, from_arrow_schema(schema))


def _lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            yield from batches_of(Piece(**row))


def parse(lines: DataFrame) -> DataFrame:
    """Lines (:data:`LINES`) with their events, as :data:`JUDGED`. Copies are still in; see :func:`sort_out`."""
    return lines.mapInArrow(_judged, from_arrow_schema(JUDGED))


def _judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from judged(events_of_lines(pa.Table.from_batches([batch]))).combine_chunks().to_batches()


def from_table(table: DataFrame, file: str) -> DataFrame:
    """Rows of a table of events as :data:`JUDGED`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from events_of_table(pa.Table.from_batches([batch]), file).combine_chunks().to_batches()

    return table.mapInArrow(read, from_arrow_schema(JUDGED))


def sort_out(parsed: DataFrame) -> Bronze:
    """Events, each once, and the quarantine. Give it rows that are persisted or written: they are read several times.

    Copies are few or none, as a rule: they are found on the columns of their identity, and taken out by themselves.
    """
    right = parsed.where("kind_ IS NULL")
    counts = right.groupBy(*IDENTITY).agg(fn.count("*").alias("copies"))
    repeated = fn.broadcast(counts.where("copies > 1").select(*IDENTITY))
    several = right.join(repeated, list(IDENTITY), "left_semi").select(*EVENTS.names)
    in_order = several.repartition(*IDENTITY).sortWithinPartitions(*IDENTITY, "file", "line")
    once = in_order.mapInArrow(each_once, from_arrow_schema(JUDGED))
    events = right.join(repeated, list(IDENTITY), "left_anti").select(*EVENTS.names)
    broken = parsed.where("kind_ IS NOT NULL").unionByName(once.where("kind_ IS NOT NULL"))
    quarantine = broken.select(
        "file", "line", fn.col("reason_").alias("reason"), fn.col("kind_").alias("kind"), fn.col("text_").alias("text")
    )
    unique = once.where("kind_ IS NULL").select(*EVENTS.names)
    return Bronze(conform(events.unionByName(unique), EVENTS), conform(quarantine, QUARANTINE))
