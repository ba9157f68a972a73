"""Names of groups that a terminal or a file system would take for something else; any client may choose them."""

from __future__ import annotations

import unicodedata
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from rejoin.pipeline.commands.parser import why
from rejoin.pipeline.report.console import brief, show
from rejoin.pipeline.report.data import GroupReport, Report
from rejoin.pipeline.report.parquet_tables import write_rows
from rejoin.pipeline.report.tables import folders_of
from rejoin.pipeline.schemas import TABLES
from rejoin.pipeline.why.tables import TablesSource

HOSTILE = "red\x1b]0;title\x07\x1b[2Ja\x00b\u202ec"
LONG = "g" * 250
WIDE = "é" * 120
PERCENT = "%" * 90
AT_MS = 1_772_532_000_000


def dangerous(text: str) -> list[str]:
    """Characters that move a cursor, change what a terminal does, or turn the direction of text."""
    return [each for each in text if each != "\n" and unicodedata.category(each) in ("Cc", "Cf")]


def written(folder: Path, *groups: str) -> Path:
    """The tables of a report in which each of these groups rebalanced once."""
    rows: dict[str, list[dict[str, Any]]] = {"rebalances": [], "findings": [], "member_sessions": [], "streams": []}
    for number, group_id in enumerate(groups):
        rows["rebalances"].append(
            {
                "run_id": "run",
                "group_id": group_id,
                "day": date(2026, 3, 3),
                "rebalance_id": f"rebalance-{number}",
                "prepared_at_ms": AT_MS,
                "ended_at_ms": AT_MS + 3_000,
                "outcome": "completed",
                "cause": "join-new",
                "members_after": ["a-1"],
                "generation_to": 1,
                "initial": True,
            }
        )
    for name, found in rows.items():
        schema = TABLES[name]
        table = pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in found], schema)
        write_rows(table, TABLES[name], folder / "tables" / name, folders_of(name))
    return folder


@pytest.mark.parametrize("name", [LONG, WIDE, PERCENT, "x" * 32_767], ids=["long", "wide", "percent", "longest"])
def test_a_group_whose_name_is_too_long_for_a_folder_is_in_the_tables_with_all_others(
    name: str, tmp_path: Path
) -> None:
    source = TablesSource(written(tmp_path, "orders", name))
    assert [each.group_id for each in source.groups()] == sorted(["orders", name])
    assert source.story(name).status.generation == 1


def test_where_all_names_are_short_each_group_has_a_folder(tmp_path: Path) -> None:
    below = written(tmp_path, "orders", "audits") / "tables" / "rebalances"
    assert sorted(each.name for each in below.glob("*/*=*")) == ["group_id=audits", "group_id=orders"]


@pytest.mark.parametrize("asked", ["nosuch", HOSTILE + "x"])
def test_groups_that_there_are_reach_the_terminal_with_visible_characters_alone(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why(asked, written(tmp_path, HOSTILE, "a\u202eb")) == 2
    said = capsys.readouterr()
    assert dangerous(said.out + said.err) == []
    assert "red\\x1b" in said.err


def hostile_report() -> Report:
    finding = {
        **dict.fromkeys(TABLES["findings"].names),
        "run_id": "run",
        "group_id": HOSTILE,
        "finding": "storm",
        "severity": "high",
        "score": 12.0,
        "title": f"{HOSTILE} rebalanced 9 times",
        "text": f"{HOSTILE} did.",
        "advice": f"Look at {HOSTILE}.",
        "setting": "group.instance.id",
        "from_ms": AT_MS,
        "members": [HOSTILE],
        "groups": [],
    }
    groups = [GroupReport("run", name, AT_MS, AT_MS + 1, findings=[finding]) for name in (HOSTILE, "b\u202ec")]
    kinds = [("not-json", 1)]
    return Report("title", groups, [], [], kinds, [], 5, silent=[f"/logs/{HOSTILE}.log"])


@pytest.mark.parametrize("is_brief", [False, True])
def test_findings_reach_the_terminal_with_visible_characters_alone(is_brief: bool) -> None:
    console = Console(file=StringIO(), width=100, highlight=False)
    if is_brief:
        brief(hostile_report(), console, 5)
    else:
        show(hostile_report(), console, page=None, tables=None)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert dangerous(said) == []
    assert "rebalanced 9 times" in said
