"""A report, a watch and ``rejoin why`` make each table by one function: what they show cannot differ."""

from __future__ import annotations

import ast
from typing import Final

import pytest

from rejoin.pipeline.incremental import groups as watch
from rejoin.pipeline.report import tables as report
from rejoin.pipeline.tables.group_tables import TABLES
from rejoin.pipeline.why import events as why
from tests.paths import ROOT

ROOMS: Final = ("tables", "audits", "transactions", "incremental", "live", "why")
ENGINES: Final = ("_in_process", "_here", "_on_spark", "_with_spark")


@pytest.mark.parametrize("name", [*TABLES, "ranges_by_partition", "records"])
def test_a_report_and_a_watch_call_one_function(name: str) -> None:
    assert getattr(report, name) is getattr(watch, name)


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
