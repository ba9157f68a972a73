"""Sums of findings are one function each, and a rule is the only place that names the events it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import reads, sums, table
from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.on_spark import table as on_spark
from rejoin.pipeline.findings.rules import RULES
from rejoin.pipeline.findings.sums import KINDS, Values
from rejoin.pipeline.incremental.groups import Groups
from rejoin.pipeline.incremental.runs import ObservedRuns, Waits
from rejoin.pipeline.why import events as why_events
from tests.paths import ROOT
from tests.sources.modules import tree_of

SUMMED = sorted(kind for kind, seen in KINDS.items() if seen.sums is not None)
EVENTS = schemas.EVENTS


@pytest.mark.parametrize("kind", SUMMED)
def test_every_driver_calls_the_one_function_of_a_sum(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[Values]] = []

    def called(rows: Iterable[Values]) -> Iterator[Values]:
        calls.append(list(rows))
        return iter(())

    seen = KINDS[kind]._replace(sums=called, selects=None)
    monkeypatch.setitem(KINDS, kind, seen)
    schema = EVENTS if seen.table == "events" else schemas.TABLES[seen.table]
    rows = pa.Table.from_pylist([{"run_id": "r", "group_id": group} for group in "aab"], schema)
    table.rows_of_kind(kind, rows)
    assert [len(each) for each in calls] == [2, 1], "reports in the process and watch: one call a group"
    sums.sums_of(kind, rows.to_pylist())
    assert len(calls) == 3, "why"
    frame = MagicMock()
    for name in ("where", "select", "repartition", "sortWithinPartitions"):
        getattr(frame, name).return_value = frame
    monkeypatch.setattr(on_spark, "fn", MagicMock())
    on_spark.rows_of_kind(seen, frame)
    task, _ = frame.mapInArrow.call_args.args
    list(task(table.rows_of_kind(kind, rows.slice(0, 0)).to_batches() or iter(())))
    assert task.func is table.summed
    assert task.args == (seen,), "Spark's tasks: the function that the process calls, of the same kind"


def test_no_other_module_names_an_event_for_the_rules() -> None:
    """Each event of ``history.events`` that a rule names in a comparison is declared with ``reads``."""
    declared = {name for each in reads.read_events() for name in each["event"]}
    compared = set()
    for path in sorted((ROOT / "pipeline" / "findings").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "event":
                compared |= {
                    each.value
                    for each in ast.walk(node.comparators[0])
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    assert compared
    assert compared <= declared


def test_a_rule_that_reads_a_new_event_touches_its_file_and_the_list_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_OF_GROUPS", "_OF_ALL_GROUPS"):
        monkeypatch.setattr(reads, name, list(getattr(reads, name)))
    monkeypatch.setattr(reads, "_COLUMNS", dict(reads._COLUMNS))

    @reads.reads("metadata_refreshed", columns=("leader",))
    @reads.reads("fault_injected", of_all_groups=True)
    def new_rule(causes: Causes) -> Iterator[Finding]:
        names = [(each.event, (each.more or {})["leader"]) for each in causes.history.events]
        yield Finding("new-rule", str(names), "", 0.0, None, None)

    monkeypatch.setattr("rejoin.pipeline.findings.rules.RULES", (*RULES, new_rule))
    about: dict[str, Any] = {"run_id": "r", "source": "coordinator", "node": "1", "confidence": "exact"}
    events = pa.Table.from_pylist(
        [
            {**about, "seq": 1, "at_ms": 1, "event": "metadata_refreshed", "group_id": "g", "leader": "m"},
            {**about, "seq": 2, "at_ms": 2, "event": "fault_injected"},
        ],
        EVENTS,
    )
    # A step of a watch keeps what the rule reads.
    runs = ObservedRuns(Waits())
    new, _ = runs.add(events)
    groups = Groups(runs)
    groups.add(new, (), everything=True)
    assert groups.one_by_one([("r", "g")])["event"].to_pylist() == ["metadata_refreshed"]
    assert runs.events_seen(["r"])["event"].to_pylist() == ["fault_injected"]
    # A report gives it to the rule, for which Spark's columns are those of KINDS, too.
    tables = {name: schemas.TABLES[name].empty_table() for name in schemas.TABLES}
    tables["member_sessions"] = pa.Table.from_pylist(
        [{"run_id": "r", "group_id": "g", "member_id": "m"}], schemas.MEMBER_SESSIONS
    )
    of_runs = table.runs_of({"r": RunContext("r", 10)}, events.filter(table.without_group(events)))
    found = list(table.judged(table.rows_by_kind(tables | {"events": events}), of_runs))
    assert [row["title"] for row in found if row["finding"] == "new-rule"] == [
        str([("metadata_refreshed", "m"), ("fault_injected", None)])
    ]
    assert "leader" in KINDS["event"].columns
    assert {"metadata_refreshed", "fault_injected"} <= reads.names_read_whole()
    assert {"commit_refused", "group_loaded"} <= why_events.READ_EVENTS
