"""Files of text as batches of lines with their numbers (:data:`rejoin.pipeline.schemas.LINES`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.pieces import LinesOfPiece, Piece, pieces, read_piece
from rejoin.pipeline.schemas import LINES


def lines_of(files: Iterable[InputFile]) -> pa.Table:
    """The lines of files. A half last line is left out where a writer is at work."""
    return pa.Table.from_batches((batch for piece in pieces(files) for batch in batches_of(piece)), LINES)


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
    return pa.RecordBatch.from_arrays(columns, schema=LINES)
