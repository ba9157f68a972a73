"""Makes a sweep's tables and its page of the finished rows.

``runs.parquet`` has everything. ``runs.csv``, ``runs.json`` and ``settings.csv`` have only what came out, not how long
it took and where: these are the same, to the byte, from wherever the sweep ran.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.pipeline.sweep.grid import Axis, Grid
from rejoin.pipeline.sweep.page import render
from rejoin.pipeline.sweep.ranking import Setting
from rejoin.pipeline.sweep.store import SweepStore, whole
from rejoin.pipeline.sweep.tables import COUNTS, HOW, MEASURES, RUNS, arrow_schema
from rejoin.simulation.output.summary import causes

Row: TypeAlias = dict[str, Any]


def write(grid: Grid, store: SweepStore, ranked: list[Setting]) -> Path:
    """Write every result; returns the page."""
    rows = [row for run in grid.runs() if (row := _row(grid, store, run.point, run.key)) is not None]
    with whole(store.folder / "runs.parquet") as path:
        pq.write_table(_table(grid, rows), path)
    _write_text(store.folder / "runs.csv", _runs_csv(grid, rows))
    _write_text(store.folder / "runs.json", _runs_json(grid, rows))
    _write_text(store.folder / "settings.csv", _settings_csv(grid, ranked))
    page = store.folder / "index.html"
    _write_text(page, render(grid, ranked, rows))
    return page


def columns_of(grid: Grid) -> dict[str, Axis]:
    """The columns of the parameters: their names, or ``set_`` before it where a run has such a column itself."""
    taken = {*RUNS.fieldNames(), "point"}
    return {f"set_{axis.name}" if axis.name in taken else axis.name: axis for axis in grid.axes}


def _row(grid: Grid, store: SweepStore, point: int, key: str) -> Row | None:
    found = store.rows.get(key)
    if found is None:
        return None
    chosen = grid.points[point].chosen
    values = {name: _value(axis, n) for (name, axis), n in zip(columns_of(grid).items(), chosen, strict=True)}
    return {"point": point, **values, **found}


def _kind(axis: Axis) -> pa.DataType:
    """Of a parameter's column: its values' own type if they have one, else text."""
    kinds = {type(value) for value in axis.values}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds <= {int, float} else pa.string()


def _value(axis: Axis, number: int) -> Any:
    return axis.label(number) if _kind(axis) == pa.string() else axis.values[number]


def _table(grid: Grid, rows: list[Row]) -> pa.Table:
    parameters = [pa.field(name, _kind(axis)) for name, axis in columns_of(grid).items()]
    schema = pa.schema([pa.field("point", pa.int64()), *parameters, *arrow_schema(RUNS)])
    return pa.Table.from_pylist(rows, schema=schema.with_metadata({"grid": grid.hash()}))


def _runs_csv(grid: Grid, rows: list[Row]) -> str:
    names = ["point", *columns_of(grid), *(name for name in RUNS.fieldNames() if name not in (*HOW, "groups"))]
    counts = [name for name, _, _ in COUNTS]
    readable = [{**row, **{name: causes(dict(row[name])) if row.get(name) else "" for name in counts}} for row in rows]
    return _csv(names, readable)


def _runs_json(grid: Grid, rows: list[Row]) -> str:
    def plain(row: Row) -> Row:
        return {name: dict(value or ()) if name in counts else value for name, value in row.items() if name not in HOW}

    counts = {name for name, _, _ in COUNTS}
    lines = [
        json.dumps({**plain(row), "groups": [plain(group) for group in row["groups"]]}, separators=(",", ":"))
        for row in rows
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _settings_csv(grid: Grid, ranked: list[Setting]) -> str:
    parameters = columns_of(grid)
    parts = ("median", "low", "high", "least", "most")
    names = ["rank", "unbeaten", "point", *parameters, "runs", "failed", "never_owned"]
    names += [f"{measure.name}_{part}" for measure in MEASURES for part in parts]
    rows = []
    for setting in ranked:
        labels = grid.labels(setting.point)
        row: Row = {"rank": setting.rank, "unbeaten": int(setting.unbeaten), "point": setting.point.number}
        row |= dict(zip(parameters, labels, strict=True))
        row |= {"runs": setting.runs, "failed": setting.failed, "never_owned": setting.never_owned}
        for name, spread in setting.spreads.items():
            row |= {f"{name}_{part}": getattr(spread, part) for part in parts}
        rows.append(row)
    return _csv(names, rows)


def _csv(names: list[str], rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write_text(path: Path, text: str) -> None:
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8")
