"""The folder of a sweep: finished rows as they come, each file there whole or not at all, and what is made of them.

    OUT/finished/*.parquet   rows as they came back, one file a portion
    OUT/journals/KEY.jsonl   journals, if the grid asks for events
    OUT/runs.parquet .csv .json, settings.csv, index.html   made of those at the end

Rows are known by their run's key, so another grid may go on in the same folder and finds what it has in common with the
one before. A row that was played by other code counts as not played.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.journal.file_lock import FileLock, FileLocked
from rejoin.pipeline.sweep.tables import JOURNAL, RUNS, arrow_schema


class SweepInUse(Exception):
    """Another sweep writes into this folder."""


class SweepStore:
    """One folder, held by one sweep at a time. ``again``: rows of runs that failed count as not played.

    Raises :class:`SweepInUse`.
    """

    def __init__(self, folder: Path, version: str, *, journals: bool, again: bool = False) -> None:
        self.folder = folder
        self.version = version
        self.rows: dict[str, dict[str, Any]] = {}
        """Finished rows of this version, by key."""
        self.of_other_code = 0
        self._journals = journals
        self._again = again
        self._finished = folder / "finished"
        self._finished.mkdir(parents=True, exist_ok=True)
        if journals:
            (folder / "journals").mkdir(exist_ok=True)
        try:
            self._lock = FileLock(folder / ".lock")
        except FileLocked:
            raise SweepInUse(f"{folder}: another sweep writes into this folder; give --out another one") from None
        self._read()

    def close(self) -> None:
        """Let others have the folder."""
        self._lock.release()

    def journal_of(self, key: str) -> Path:
        """Where a run's journal is."""
        return self.folder / "journals" / f"{key}.jsonl"

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Keep rows that came back; those that are there already are left out. When this returns they are on disk."""
        fresh = []
        for row in rows:
            if row["run_key"] in self.rows:
                continue
            journal = row.get(JOURNAL)
            if journal is not None:
                with whole(self.journal_of(row["run_key"])) as path:
                    path.write_text(journal, encoding="utf-8")
            kept = {name: value for name, value in row.items() if name != JOURNAL}
            self.rows[row["run_key"]] = kept
            fresh.append(kept)
        if fresh:
            self._write(fresh)

    def compact(self) -> None:
        """One file instead of many."""
        before = sorted(self._finished.glob("*.parquet"))
        if len(before) < 2:
            return
        self._write(list(self.rows.values()))
        for path in before:
            path.unlink()

    def _write(self, rows: list[dict[str, Any]]) -> None:
        with whole(self._finished / f"{uuid4().hex}.parquet") as path:
            pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(RUNS)), path)

    def _read(self) -> None:
        for leftover in sorted(self.folder.rglob("*.unfinished")):
            leftover.unlink()
        for path in sorted(self._finished.glob("*.parquet")):
            for row in pq.read_table(path).to_pylist():
                if row["code_version"] != self.version:
                    self.of_other_code += 1
                elif row["error"] is not None:
                    if not self._again:
                        self.rows.setdefault(row["run_key"], row)
                elif not self._journals or self.journal_of(row["run_key"]).is_file():
                    self.rows.setdefault(row["run_key"], row)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write that gets its name when it is whole and on disk."""
    aside = path.with_name(f"{path.name}.unfinished")
    yield aside
    with aside.open("rb") as written:
        os.fsync(written.fileno())
    aside.replace(path)
