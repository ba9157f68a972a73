"""The logs of an application of Kafka Streams 4.4 with the streams protocol, on a Kafka 4.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.pipeline.streams_groups.tables import STREAMS_GROUPS
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.sources import open_source
from rejoin.simulation.kernel import SelectiveListener
from rejoin.simulation.output.client_logs import LOGGED_EVENTS, ClientLogs, not_logged
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.paths import GOLDEN
from tests.pipeline.recorded import events_of_logs

FOLDER: Final = GOLDEN / "streams-group-logs"


def tables_of(*names: str) -> dict[str, list[dict[str, Any]]]:
    made: dict[str, Any] = STREAMS_GROUPS.tables(events_of_logs([FOLDER / name for name in names]))
    return {name: table.to_pylist() for name, table in made.items()}


def findings_of(*names: str) -> list[str]:
    return [row["finding"] for row in STREAMS_GROUPS.judge(tables_of(*names))]


def test_members_and_their_tasks_are_read_without_rebalances() -> None:
    events = events_of_logs([FOLDER / "words-1.log"]).to_pylist()
    assert {row["kind"] for row in events if row["event"] == "member_joined"} == {"streams"}
    assert not {"rebalance_started", "rebalance_completed"} & {row["event"] for row in events}
    given = [row for row in tables_of("words-1.log")["tasks"] if row["role"] == "active"]
    assert {(row["subtopology"], row["task"]) for row in given} == {
        (each, task) for each in ("0", "1") for task in range(3)
    }
    assert {row["process_id"] for row in given} == {"e74563ce-3c0d-45a4-9599-eb72466b4123"}


def test_a_restored_task_is_ready_when_its_thread_says_so() -> None:
    restores = tables_of("words-1.log")["task_restores"]
    assert restores
    assert all(0 <= row["restore_ms"] < 10_000 for row in restores)


def test_the_log_of_one_member_says_nothing_of_tasks_without_owner() -> None:
    tables = tables_of("words-0.log")
    assert tables["task_moves"] == []
    assert {row["unowned_ms"] for row in tables["tasks"]} == {None}


@pytest.mark.parametrize(
    ("names", "findings"),
    [
        (("nowhere-words-0.log",), ["streams-source-topic-missing"]),
        (("endpoint-words-0.log",), ["streams-members-refused"]),
        (("words-0.log", "words-1.log"), []),
        (("server.log",), ["streams-source-topic-missing", "streams-endpoint-before-topics"]),
    ],
)
def test_what_is_found(names: tuple[str, ...], findings: list[str]) -> None:
    found = findings_of(*names)
    assert list(dict.fromkeys(found)) == findings


def test_the_coordinator_knows_better_than_its_members() -> None:
    together = tables_of("server.log", "words-0.log", "words-1.log")
    alone = tables_of("server.log")
    names = ("subtopology", "task", "from_member_id", "member_id", "cause")
    moves = [[tuple(row[name] for name in names) for row in each["task_moves"]] for each in (together, alone)]
    assert moves[0] == moves[1]
    assert len(moves[0]) == 12


@pytest.mark.parametrize("name", ["server.log", "words-1.log"])
def test_the_answer_has_epochs_and_tasks(name: str, tmp_path: Path) -> None:
    said = " ".join(answer(open_source(FOLDER / name).story("words")))
    assert "generation" not in said
    assert "active task" in said or "no task has an owner" in said


APPLICATION: Final = """
horizon: 40s
topics:
  lines: {partitions: 2, records_per_second: 5}
groups:
  counts:
    protocol: streams
    topics: lines
    consumers: 2
    streams: {standby_replicas: 1, subtopologies: [{stores: {totals: {restore: 1ms, records: 100}}}]}
"""


def test_threads_of_a_simulation_log_their_tasks_and_restores(tmp_path: Path) -> None:
    scenario = scenario_from(APPLICATION)
    assert not_logged("java", scenario) is None
    assert "streams group" in (not_logged("rdkafka", scenario) or "")
    logs = ClientLogs("java")
    play(scenario, listeners=[SelectiveListener(logs.on_event, LOGGED_EVENTS)])
    logs.write(tmp_path)
    events = events_of_logs(sorted((tmp_path / "counts").iterdir()))
    assert {row["kind"] for row in events.to_pylist() if row["event"] == "member_joined"} == {"streams"}
    tables: dict[str, Any] = STREAMS_GROUPS.tables(events)
    tasks = tables["tasks"].to_pylist()
    assert {(row["subtopology"], row["task"]) for row in tasks if row["role"] == "active"} == {("0", 0), ("0", 1)}
    assert {row["task"] for row in tasks if row["role"] == "standby"} == {0, 1}
    assert {row["task"] for row in tables["task_restores"].to_pylist()} == {0, 1}
