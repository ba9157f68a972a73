"""Lines of journals become events, or rows of the quarantine that say what is wrong with them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rejoin.journal.envelope import RowEncoder
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.journals import events_of_lines
from rejoin.pipeline.reading.text_lines import lines_of
from rejoin.pipeline.report import on_spark
from rejoin.pipeline.report.events import read_events
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.coordinator.core.groups.consumer_node import ConsumerNode
from tests.fuzz_files import KINDS, TOKENS, edited
from tests.paths import ROOT
from tests.pipeline.bad_files import FILES, write_foreign_tables

GALLERY = ("dynamic_rolling_deploy", "cooperative_scale_out", "static_rolling_deploy")
EACH = 4
"""Rows of each event in a run."""
MUTATED = 200


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journals")
    for number, path in enumerate(sorted((ROOT / "tests/golden/journals").glob("*/*.jsonl"))):
        (folder / f"golden-{number}.jsonl").write_bytes(path.read_bytes())
    for name in GALLERY:
        scenario = scenario_from((ROOT / f"simulation/gallery/{name}.yaml").read_text())
        path = folder / f"{name}.jsonl"
        play(scenario, 1, journal=path, run_id=name)
        seen: Counter[str] = Counter()
        with path.open() as rows:
            kept = [row for row in rows if seen.update([event := json.loads(row)["event"]]) or seen[event] <= EACH]
        path.write_text("".join(kept))
    return folder


def test_every_event_of_a_consumer_group_is_one_that_tables_have() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("s", 0, instance_id="one")
    node.heartbeat("a", 2)
    node.heartbeat("a", 2, 0, 1)
    node.heartbeat("s", 3, instance_id="one")
    node.heartbeat("s", -2, instance_id="one")
    node.heartbeat("a", 1)
    encoder = RowEncoder("run", "coordinator", "1")
    texts = [encoder.encode(seq, 1, event).decode() for seq, event in enumerate(node.events, 1)]
    columns = {"file": ["f"] * len(texts), "line": list(range(1, len(texts) + 1)), "text": texts}
    lines = pa.table({**columns, "problem": pa.nulls(len(texts), pa.string())})
    assert events_of_lines(lines).quarantine.to_pylist() == []


def test_lines_of_the_gallery_and_of_recorded_journals_are_all_events(journals: Path) -> None:
    lines = lines_of(find([journals]))
    read = events_of_lines(lines)
    assert (read.events.num_rows, read.quarantine.num_rows) == (lines.num_rows, 0)


def test_rows_are_the_same_however_they_are_written(journals: Path, tmp_path: Path) -> None:
    """Other spacing, other order, fields that no event has: each line is then judged by itself."""
    path = journals / f"{GALLERY[1]}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    other = [json.dumps({"more": [1], **dict(reversed(row.items()))}, indent=None) for row in rows]
    (tmp_path / "other.jsonl").write_text("".join(f"  {line} \n" for line in other))
    usual, unusual = (
        events_of_lines(lines_of(find([each]))).events.drop_columns(["file", "event_json"]).sort_by("line").to_pylist()
        for each in (path, tmp_path / "other.jsonl")
    )
    assert unusual == usual


ROW = (
    b'{"schema_version":2,"run_id":"r","source":"client","node":"n","seq":1,"at_ms":1,'
    b'"event":"assignment_store_failed","error":"E",%s}'
)
SAID = {
    b'"group_id":"g","generation":1': None,
    b'"group_id":"g","generation":1,"generation":2': None,
    b'"group_id":1,"generation":1': None,
    b'"group_id":"\\ud800","generation":1': None,
    b'"group_id":"g","generation":1}{"schema_version":2': ("not-json", "more than one JSON object in a line"),
    b'"group_id":"g","generation":NaN': ("not-json", "not JSON; expected one JSON object in each line"),
    b'"group_id":"g"': ("field", "assignment_store_failed without generation"),
    b'"group_id":"g","generation":"1"': (
        *("field", "assignment_store_failed: the value of a field has not the type it should have"),
    ),
    b'"group_id":"g","generation":2000000000': ("field", "assignment_store_failed: a number is too large"),
    b'"group_id":"g","generation":true': (
        *("field", "assignment_store_failed: the value of a field has not the type it should have"),
    ),
}


@pytest.mark.parametrize("rest", SAID)
def test_what_is_wrong_with_a_row(rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "row.jsonl"
    path.write_bytes(ROW % rest + b"\n")
    read = events_of_lines(lines_of(find([path])))
    said = [(row["kind"], row["reason"]) for row in read.quarantine.to_pylist()]
    assert said == ([] if SAID[rest] is None else [SAID[rest]])
    assert read.events.num_rows == (SAID[rest] is None)


def test_the_same_rows_on_spark(spark: SparkSession, journals: Path, tmp_path: Path) -> None:
    """Bad files, mistakes, copies and rows of the gallery: tasks of Spark and this process call one function."""
    dice = random.Random(7)
    whole = [line for path in sorted(journals.iterdir()) for line in path.read_bytes().splitlines()]
    lines = [
        edited(dice.choice(whole), dice.choice(KINDS), dice.random(), dice.randint(1, 20), dice.choice(TOKENS))
        for _ in range(MUTATED)
    ]
    (tmp_path / "mistakes.jsonl").write_bytes(b"\n".join([*lines, *whole[:50], *whole[:10]]) + b"\n")
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    write_foreign_tables(tmp_path)
    found = find([tmp_path, journals])
    here = read_events(found, "UTC")
    there = on_spark.read_events(spark, found, "UTC")
    for one, other in zip(here, there, strict=True):
        assert Counter(map(str, one.to_pylist())) == Counter(map(str, other.toArrow().to_pylist()))
    assert here.quarantine.num_rows > 0.3 * MUTATED
    assert {"repeated", "not-a-row", "encoding"} <= set(here.quarantine["kind"].to_pylist())
