"""Whatever stands in a file, its reader says what is wrong with it, and never ends in a traceback.

The files are real ones with mistakes in them. Spark's part of reading has its own tests, in
``tests/pipeline/commands/test_bad_input.py``.
"""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BytesIO, StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given

from rejoin.coordinator.commands.log import committed
from rejoin.coordinator.commands.log.command import export
from rejoin.coordinator.commands.log.contents import LogProblem
from rejoin.coordinator.commands.log.files import TextLog
from rejoin.pipeline.reading.broker_logs.on_spark import PARSED, follow
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.journals import events_of_lines
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.reading.parquet_files import with_whole_pages
from rejoin.pipeline.reading.pieces import pieces, read_piece
from rejoin.pipeline.reading.text_lines import lines_of
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from rejoin.transcript.commands import play as play_transcript
from tests.coordinator.commands.log.logs import filled
from tests.coordinator.storage.helpers import Sqlite
from tests.fuzz_files import FUZZED, mutated, overwritten
from tests.paths import ROOT
from tests.pipeline.reading.broker_logs.test_histories import LIFE_3_9
from tests.pipeline.reading.test_request_log import TWO

LOGS = ("\n".join(LIFE_3_9).encode() + b"\n", "\n".join(TWO).encode() + b"\n", "\n".join([*LIFE_3_9, *TWO]).encode())
JOURNALS = tuple(path.read_bytes() for path in sorted((ROOT / "tests/golden/journals").glob("*/*.jsonl")))
TRANSCRIPTS = tuple(path.read_bytes() for path in sorted((ROOT / "tests/transcripts").rglob("*.txt"))[:40])
SCENARIOS = tuple(path.read_bytes() for path in sorted((ROOT / "simulation/gallery").glob("*.yaml")))
PRINTED = (
    b'{"key":{"version":1,"data":{"group":"g","topic":"t","partition":0}},"value":{"version":3,"data":{"offset":4,'
    b'"leaderEpoch":-1,"metadata":"","commitTimestamp":1}}}\n{"key":{"version":2,"data":{"group":"g"}},"value":null}\n'
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file"


@FUZZED
@given(content=mutated(LOGS))
def test_a_brokers_log(file: Path, content: bytes) -> None:
    """Each line counts once: as a statement, a request, something else, a continuation, or in the quarantine."""
    file.write_bytes(content)
    *found, counts = read_file(str(file))
    assert counts["what"] == "file"
    by_group: dict[str, list[dict[str, object]]] = {}
    for row in found:
        if row["what"] != "broken":
            by_group.setdefault(row["about"], []).append(row)
    for rows in by_group.values():
        follow(pa.Table.from_pylist(rows, PARSED))


@FUZZED
@given(content=mutated(JOURNALS))
def test_a_journal(file: Path, content: bytes) -> None:
    path = file.with_suffix(".jsonl")
    path.write_bytes(content)
    numbers = [number for piece in pieces(find([path])) for read in read_piece(piece) for number in read.numbers]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.fixture(scope="module")
def table(file: Path) -> bytes:
    path = file.with_suffix(".jsonl")
    path.write_bytes(b"".join(JOURNALS))
    events, _ = events_of_lines(lines_of(find([path])))
    assert events.num_rows
    written = BytesIO()
    pq.write_table(events, written)
    return written.getvalue()


def test_a_table_of_events(file: Path, table: bytes) -> None:
    """The schema and places of columns are at the end of the file, so most mistakes are put there."""
    path = file.with_suffix(".parquet")

    @FUZZED
    @given(content=overwritten(table))
    def read(content: bytes) -> None:
        path.write_bytes(content)
        [found] = map(with_whole_pages, find([path]))
        assert found.kind == "parquet"
        assert "\n" not in (found.problem or "")

    read()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("exported")
    filled(Sqlite(folder / "data"))
    assert export(data=folder / "data", out=folder / "export") == 0
    return (folder / "export").read_bytes()


def test_an_export_and_what_a_console_consumer_printed(file: Path, exported: bytes) -> None:
    # The last line has the sum of the others: without it, what is wrong with one is seen.
    files = (exported, exported.rsplit(b"\n", 2)[0] + b"\n", PRINTED)

    @FUZZED
    @given(content=mutated(files))
    def read(content: bytes) -> None:
        file.write_bytes(content)
        with suppress(LogProblem):
            source = TextLog(str(file), 50)
            missing = committed.without_topic(source.contents, committed.ends_of_topics(source.records()))
            committed.create_topics(source.contents, missing)

    read()


@FUZZED
@given(content=mutated(TRANSCRIPTS))
@example(content=b"stable a=t:2147483648\n----\n")
@example(content=b"topic t 1\nadmin commit t:0=5/99999999999999\n----\n")
def test_a_transcript(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert play_transcript(file) in (0, 1, 2)


@FUZZED
@given(content=mutated(SCENARIOS))
@example(content=b"[]: a key that is a list\n")
def test_a_scenario(content: bytes) -> None:
    with suppress(BadScenario):
        scenario_from(content.decode("utf-8", "replace"), "file.yaml")
