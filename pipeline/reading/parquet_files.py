"""Whether a file of Parquet is a table of events that can be read."""

from __future__ import annotations

from typing import Final

from pyarrow import ArrowException
from pyarrow.parquet import ParquetFile, read_metadata

from rejoin.pipeline.reading.inputs import NO_TABLE, InputFile
from rejoin.pipeline.reading.journals import not_of_events

_NO_PARQUET: Final = (ArrowException, OSError, ValueError, MemoryError)
"""Exceptions of reading damaged Parquet; names that are not UTF-8 are a ValueError."""


def as_parquet(found: InputFile) -> InputFile:
    """The file as Parquet, or with the reason why it is no table of events."""
    try:
        metadata = read_metadata(found.path)
        why = not_of_events(metadata.schema.to_arrow_schema())
    except _NO_PARQUET as problem:
        return _unreadable(found, problem)
    said = f"{NO_TABLE}, its {metadata.num_rows:,} rows are left out: {why}"
    return found._replace(kind="parquet", problem=said if why else None)


def with_whole_pages(found: InputFile) -> InputFile:
    """The file; if it is Parquet, with the damage behind its schema. For that, the file is read to its end."""
    if found.kind != "parquet" or found.problem is not None:
        return found
    try:
        with ParquetFile(found.path) as file:
            for _ in file.iter_batches():
                pass
    except _NO_PARQUET as problem:
        return _unreadable(found, problem)
    return found


def _unreadable(found: InputFile, problem: BaseException) -> InputFile:
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return found._replace(kind="parquet", problem=f"cannot be read as Parquet: {lines[0]}")
