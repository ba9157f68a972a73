"""A report, a watch and ``rejoin why`` make each table by one function: what they show cannot differ."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from rejoin.pipeline.findings import table as findings
from rejoin.pipeline.incremental import groups as watch
from rejoin.pipeline.incremental.tables import IncrementalTables
from rejoin.pipeline.report import tables as report
from rejoin.pipeline.tables import group_tables
from rejoin.pipeline.tables.group_tables import TABLES
from rejoin.pipeline.why import events as why
from tests.paths import ROOT
from tests.pipeline.incremental.streams import events_of, whole, written
from tests.pipeline.watch.streams import SCENARIO

ROOMS: Final = ("tables", "audits", "transactions", "incremental", "watch", "why")
FUNCTIONS: Final[dict[str, tuple[Any, str, Any]]] = {
    **{
        name: (group_tables, f"_{name.upper()}", replace(table, rows_of=lambda _: ())) for name, table in TABLES.items()
    },
    "findings": (findings, "rows_of", lambda _: ()),
}
"""Table to where its function is, and one in its place that makes no rows."""
ENGINES: Final = ("_in_process", "_here", "_on_spark", "_with_spark")


@pytest.mark.parametrize("name", [*TABLES, "ranges_by_partition", "records"])
def test_a_report_and_a_watch_call_one_function(name: str) -> None:
    assert getattr(report, name) is getattr(watch, name)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return events_of(SCENARIO)


def rows_of_both(events: pa.Table, name: str, folder: Path) -> tuple[int, int]:
    """How many rows a table of a report has, and of a watch, whose dashboard counts for rebalances."""
    tables = IncrementalTables(folder)
    ended = tables.take(events, 0, everything=True)
    assert name != "rebalances" or ended.num_rows == tables.count(name)
    assert name != "rebalances" or not any(row["attempt"] for row in tables.groups())
    return len(whole(events)[name]), len(written(folder)[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_the_function_of_a_table_neither_has_rows(
    name: str, events: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_report, of_watch = rows_of_both(events, name, tmp_path / "before")
    assert of_report == of_watch > 0
    monkeypatch.setattr(*FUNCTIONS[name])
    assert rows_of_both(events, name, tmp_path / "after") == (0, 0)


def test_why_calls_the_functions_of_the_tables() -> None:
    read = vars(why)
    called = {
        "rebalances": read["rebalances_of_group"],
        "member_sessions": read["member_sessions"].sessions_of_group,
        "pauses": read["pauses"].pauses_of_group,
        "balance": read["balance"].balance_of_group,
        "ownership": read["ownership"].ownership_of_group,
    }
    assert called == {name: table.rows_of for name, table in TABLES.items()}


def test_no_function_has_a_twin_for_another_engine() -> None:
    paths = (path for room in ROOMS for path in (ROOT / "pipeline" / room).rglob("*.py"))
    trees = (ast.parse(path.read_text()) for path in paths)
    names = {each.name for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    twins = {name for name in names for engine in ENGINES if name.endswith(engine) and name != engine[1:]}
    assert twins == set()
