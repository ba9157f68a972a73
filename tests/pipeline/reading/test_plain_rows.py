"""Rows that are read without Spark are the rows that Spark reads; what is unusual is left to it."""

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
from rejoin.pipeline.reading.journals import parse
from rejoin.pipeline.reading.plain_rows import read_plain
from rejoin.pipeline.reading.text_lines import lines_here
from rejoin.pipeline.schemas import EVENTS, LINES
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.coordinator.core.groups.consumer_node import ConsumerNode
from tests.fuzz_files import KINDS, TOKENS, edited
from tests.paths import ROOT

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
    assert read_plain(lines)[1].to_pylist() == []


def must_be_those_of_spark(spark: SparkSession, lines: pa.Table) -> int:
    """Returns how many were read."""
    events, others = read_plain(lines)
    assert events.num_rows + others.num_rows == lines.num_rows
    read = parse(spark.createDataFrame(lines, LINES)).where("kind_ IS NULL").select(*EVENTS.fieldNames()).toArrow()
    of_spark = {(row["file"], row["line"]): row for row in read.to_pylist()}
    for row in events.to_pylist():
        assert row == of_spark[row["file"], row["line"]]
    return int(events.num_rows)


def test_the_same_events_with_and_without_spark(spark: SparkSession, journals: Path) -> None:
    lines = lines_here(find([journals]))
    assert must_be_those_of_spark(spark, lines) > 0.5 * lines.num_rows
    simulated = lines_here(find([journals / f"{name}.jsonl" for name in GALLERY]))
    events, others = read_plain(simulated)
    assert (events.num_rows, others.num_rows) == (simulated.num_rows, 0)


def test_lines_with_mistakes_are_no_others_without_spark(spark: SparkSession, journals: Path, tmp_path: Path) -> None:
    dice = random.Random(7)
    whole = [line for path in sorted(journals.iterdir()) for line in path.read_bytes().splitlines()]
    lines = [
        edited(dice.choice(whole), dice.choice(KINDS), dice.random(), dice.randint(1, 20), dice.choice(TOKENS))
        for _ in range(MUTATED)
    ]
    odd = [
        b'{"schema_version":2,"run_id":"r","source":"client","node":"n","seq":1,"at_ms":1,"event":"group_emptied",%s}'
        % rest
        for rest in (b'"group_id":"g","generation":1', b'"group_id":"g","generation":1,"generation":2', b'"group_id":1')
    ]
    path = tmp_path / "mistakes.jsonl"
    path.write_bytes(b"\n".join([*lines, *odd]) + b"\n")
    assert must_be_those_of_spark(spark, lines_here(find([path]))) > 0.02 * MUTATED
