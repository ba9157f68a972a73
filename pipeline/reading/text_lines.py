"""Files of text as a table of lines with their numbers.

Spark's own reader of text gives no line numbers and does not say where bytes were no UTF-8. This one reads in Python,
in parallel, large files in several pieces, and hands whole batches of lines to Spark as Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.pieces import PIECE_BYTES, LinesOfPiece, Piece, pieces, read_piece
from rejoin.pipeline.schemas import LINES

_SCHEMA: Final = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("text", pa.string()), ("problem", pa.string())]
)
_PIECES: Final = "path string, start long, end long, closed boolean"


def read_lines(spark: SparkSession, files: Iterable[InputFile], *, piece_bytes: int = PIECE_BYTES) -> DataFrame:
    """The lines of files, as :data:`pipeline.schemas.LINES`. A half last line is left out where a writer is at work."""
    cut = pieces(files, piece_bytes)
    tasks = max(1, min(len(cut), 4 * spark.sparkContext.defaultParallelism))
    # Round robin by hand: Spark's own repartition would shuffle by a random start.
    dealt = [cut[first::tasks] for first in range(tasks)]
    rows = spark.sparkContext.parallelize(dealt, tasks).flatMap(lambda pieces: pieces)
    return spark.createDataFrame(rows, _PIECES).mapInArrow(_read_all, LINES)


def lines_here(files: Iterable[InputFile]) -> pa.Table:
    """The same, read by this process: soon done for small files, for which no worker need be started."""
    return pa.Table.from_batches((batch for piece in pieces(files) for batch in batches_of(piece)), _SCHEMA)


def _read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            yield from batches_of(Piece(**row))


def batches_of(piece: Piece) -> Iterator[pa.RecordBatch]:
    """The lines of a piece; a file that breaks off ends with a row without line that says so."""
    return map(_batch, read_piece(piece))


def _batch(read: LinesOfPiece) -> pa.RecordBatch:
    problems = read.problems
    try:
        texts = pa.array(read.lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        decoded, problems = read.decoded()
        texts = pa.array(decoded, pa.string())
    columns = [
        pa.array([read.path] * len(read.lines), pa.string()),
        pa.array(read.numbers, pa.int64()),
        texts,
        pa.array(problems, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
