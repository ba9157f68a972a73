"""Lines of Kafka Streams about tasks: all are read, and they say how long tasks took and which threads are of use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile
from rejoin.pipeline.why.sources import open_source

CLIENT = "bills-5d0c2f11-9a3e-4c57-8f0b-6a1d44ee9021"
THREAD = f"stream-thread [{CLIENT}-StreamThread-1]"
CONSUMER = f"[Consumer clientId={CLIENT}-StreamThread-1-consumer, groupId=bills]"
TASKS = "\n\tNew active tasks: []\n\tNew standby tasks: [{standby}]\n\tExisting active tasks: []"
OTHERS = (
    "task [0_1] Initialized",
    "task [0_1] Suspended RUNNING",
    "task [0_1] Closed and recycled state",
    "standby-task [1_0] Closed clean",
    "standby-task [1_0] Suspended running",
    "partition revocation took 3 ms.\n\tsuspended active tasks: [0_1]\n\tsuspended standby tasks: []",
    "partitions lost took 3 ms.",
    "Restoration in progress for 1 partitions. {bills-changelog-0: position=5, end=9, totalRestored=4}",
    "Finished restoring changelog bills-changelog-0 to store totals with a total number of 9 records",
    "Failed to commit stream task 0_1 since it got migrated to another thread already. Closing it as zombie.",
    "Could not initialize task 0_1 since: another thread has its directory; will retry",
    "Processed 5 total records, ran 0 punctuators, and committed 2 total tasks since the last update",
    "Requesting followup rebalance be scheduled by 5d0c for 1746271203220 to probe for caught-up replica tasks.",
    "Finished unstable assignment of tasks, a followup rebalance will be scheduled.",
    "Assigned tasks to clients as {5d0c=[activeTasks: ([0_1]) standbyTasks: ([]) capacity: 1]}.",
    "Assigned 4 total tasks including 2 stateful tasks to 1 client nodes.",
)
"""Lines that say nothing which is in a table: by release, from 2.0 to 4.0."""


def log(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "thread.log"
    path.write_text("".join(f"2025-05-03 11:2{line}\n" for line in lines))
    return path


def findings(path: Path) -> list[dict[str, Any]]:
    return list(open_source(path).story("bills").findings)


@pytest.mark.parametrize("text", OTHERS)
def test_lines_about_tasks_are_read(text: str, tmp_path: Path) -> None:
    path = log(tmp_path, f"0:00,000 INFO {THREAD} {text}")
    reader = ClientLogFile("thread.log", "thread")
    with path.open("rb") as file:
        assert not [each for each in reader.statements(file) if isinstance(each, BrokenLine)]
    assert (reader.counts.statements, reader.counts.other) == (1, 0)


def empty_assignment(tmp_path: Path, standby: str) -> Path:
    tasks = f"0:01,000 INFO {THREAD} Handle new assignment with:{TASKS.format(standby=standby)}"
    return log(
        tmp_path,
        f"{tasks}\n\tExisting standby tasks: []",
        f"0:01,001 INFO {CONSUMER} Setting newly assigned partitions []",
    )


def test_a_thread_with_standby_tasks_is_not_assigned_nothing(tmp_path: Path) -> None:
    assert [each["finding"] for each in findings(empty_assignment(tmp_path, "1_0"))] != ["assigned-nothing"]


def test_a_thread_without_any_task_is(tmp_path: Path) -> None:
    assert [each["finding"] for each in findings(empty_assignment(tmp_path, ""))] == ["assigned-nothing"]


def states(tmp_path: Path, ended: str, *said: str) -> Path:
    return log(
        tmp_path,
        f"0:00,000 INFO {THREAD} State transition from PARTITIONS_REVOKED to PARTITIONS_ASSIGNED",
        *said,
        f"{ended} INFO {THREAD} State transition from PARTITIONS_ASSIGNED to RUNNING",
    )


def test_states_alone_say_how_long_tasks_took(tmp_path: Path) -> None:
    (found,) = [each for each in findings(states(tmp_path, "0:45,000")) if each["finding"] == "slow-restoration"]
    assert found["numbers"] == {"times": 1, "longest_ms": 45_000, "tasks": 0}
    assert found["severity"] == "low"


def test_the_threads_own_figure_counts_and_it_counts_once(tmp_path: Path) -> None:
    said = f"2:05,000 INFO {THREAD} Restoration took 124700 ms for all active tasks [0_0, 1_0]"
    (found,) = [each for each in findings(states(tmp_path, "2:05,001", said)) if each["finding"] == "slow-restoration"]
    assert found["numbers"] == {"times": 1, "longest_ms": 124_700, "tasks": 2}
    assert found["severity"] == "medium"


def test_tasks_that_run_soon_are_no_finding(tmp_path: Path) -> None:
    assert "slow-restoration" not in {each["finding"] for each in findings(states(tmp_path, "0:02,000"))}


def test_a_producer_that_was_fenced_is_no_static_member_that_was(tmp_path: Path) -> None:
    text = "org.apache.kafka.streams.errors.TaskMigratedException: Producer got fenced trying to send a record"
    found = findings(log(tmp_path, f"0:00,000 WARN {THREAD} {text}; it means all tasks should be migrated."))
    assert [each["finding"] for each in found] == ["rejoined-by-its-own-log"]
    assert "TaskMigratedException" in found[0]["text"]
    assert "group.instance.id" not in found[0]["advice"]
