"""Files of a table that grows: one for each step that settled rows, and one with the rows that are open.

    NAME/part-STEP.parquet    rows that never change again
    NAME/parts-STEP.parquet   those of all parts up to a step, which are removed then
    NAME/open.parquet         rows as they are now, all of them written again with each step

A step that is done once more, because it was interrupted, writes the same files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

_OPEN: Final = "open.parquet"
_MOST_PARTS: Final = 100
"""Parts of a table; when there are more, they become one file."""


class TableFiles:
    """One table below a folder."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._folder = folder / name
        self._schema = schema

    def forget_after(self, step: int) -> None:
        """Remove what steps after this one have settled, and parts that were merged and not removed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        merged = max(map(_step_of, self._merged()), default=-1)
        for path in self._parts():
            if _step_of(path) > step or _step_of(path) <= merged:
                path.unlink()
        for path in self._merged():
            if _step_of(path) < merged:
                path.unlink()

    def add(self, rows: pa.Table, step: int) -> None:
        """Append settled rows."""
        if rows.num_rows:
            self._write(rows, _part(step))

    def replace_open(self, rows: pa.Table) -> None:
        """Write the rows that are open."""
        self._write(rows, _OPEN)

    def merge(self, step: int) -> None:
        """Make one file of many; call it for the last step whose state is kept."""
        parts = [path for path in self._parts() if _step_of(path) <= step]
        if len(parts) > _MOST_PARTS:
            paths = [*self._merged(), *parts]
            self._write(pa.concat_tables(pq.read_table(path, partitioning=None) for path in paths), _merged(step))
            self.forget_after(step)

    def settled(self) -> int:
        """How many rows are settled."""
        return sum(pq.read_metadata(path).num_rows for path in (*self._merged(), *self._parts()))

    def read(self) -> pa.Table:
        """Rows that are settled."""
        tables = [pq.read_table(path, partitioning=None) for path in (*self._merged(), *self._parts())]
        return pa.concat_tables([self._schema.empty_table(), *tables])

    def _parts(self) -> list[Path]:
        return sorted(self._folder.glob("part-*.parquet"))

    def _merged(self) -> list[Path]:
        return sorted(self._folder.glob("parts-*.parquet"))

    def _write(self, rows: pa.Table, name: str) -> None:
        aside = self._folder / f".{name}.new"
        pq.write_table(rows.select(self._schema.names).cast(self._schema), aside, compression="snappy")
        aside.replace(self._folder / name)


def _part(step: int) -> str:
    return f"part-{step:012d}.parquet"


def _merged(step: int) -> str:
    return f"parts-{step:012d}.parquet"


def _step_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])
