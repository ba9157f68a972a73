"""Whether each journal is whole: rows missing, out of order, or written after the clock stepped back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoin.pipeline.schemas import STREAMS
from rejoin.pipeline.tables.whole_groups import Rows, made_of_streams

_STREAM: Final = ("run_id", "source", "node")
_PLACE: Final = ("file", "line")
_READS: Final = (*_STREAM, *_PLACE, "seq", "at_ms")

Key = tuple[Any, ...]
Ints = npt.NDArray[np.int64]


def streams(events: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.STREAMS` from the events.

    ``missing`` counts from the first row of the stream: its journal may have been cut off at the beginning on purpose.
    """
    return made_of_streams(events.select(list(_READS)), _STREAM, _PLACE, _made, STREAMS)


def _made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the table from the rows of whole streams, in order."""
    found: dict[Key, dict[str, Any]] = {}
    for batch in batches:
        seqs, instants = (batch[name].to_numpy() for name in ("seq", "at_ms"))
        bounds = _bounds(batch)
        for begin, end in pairwise(bounds):
            key = tuple(batch[name][begin].as_py() for name in _STREAM)
            _count(found.setdefault(key, {}), seqs[begin:end], instants[begin:end])
    rows = [
        dict(zip(_STREAM, key, strict=True)) | row | {"missing": row["last_seq"] - row["first_seq"] + 1 - row["rows"]}
        for key, row in found.items()
    ]
    yield pa.RecordBatch.from_pylist(rows, STREAMS)


def _bounds(batch: pa.RecordBatch) -> list[int]:
    """Where each stream begins among the rows, and where the last one ends."""
    changes = np.zeros(max(0, batch.num_rows - 1), dtype=bool)
    for name in _STREAM:
        codes = batch[name].dictionary_encode(null_encoding="encode").indices.to_numpy()
        changes |= codes[1:] != codes[:-1]
    return [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows] if batch.num_rows else [0]


def _count(row: dict[str, Any], seqs: Ints, instants: Ints) -> None:
    """Add the next rows of a stream; ``row`` has the columns of the table, and the last row before as ``before``."""
    if not row:
        row |= {"rows": 0, "out_of_order": 0, "clock_steps": 0, "first_seq": seqs[0], "last_seq": seqs[0]}
        row |= {"first_at_ms": instants[0], "last_at_ms": instants[0], "before": (seqs[0] - 1, instants[0])}
    seq_before, at_before = row["before"]
    later = np.diff(seqs, prepend=seq_before) > 0
    row["rows"] += len(seqs)
    row["out_of_order"] += int((~later).sum())
    row["clock_steps"] += int((later & (np.diff(instants, prepend=at_before) < 0)).sum())
    row["first_seq"], row["last_seq"] = min(row["first_seq"], int(seqs.min())), max(row["last_seq"], int(seqs.max()))
    row["first_at_ms"] = min(row["first_at_ms"], int(instants.min()))
    row["last_at_ms"] = max(row["last_at_ms"], int(instants.max()))
    row["before"] = (seqs[-1], instants[-1])
