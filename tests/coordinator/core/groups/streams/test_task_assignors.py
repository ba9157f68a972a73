"""The assignor of tasks answers as Kafka's: 422 recorded problems, and what a user may rely on besides."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any, Final

from rejoin.coordinator.core.groups.streams.assignors import (
    AssignedTasks,
    StickyTaskAssignor,
    SubtopologyTasks,
    TaskMember,
)
from tests.benchmarks.calls import steps_of
from tests.paths import ROOT

PROBLEMS: Final = ROOT / "tests/golden/streams-groups/sticky-assignor.jsonl.gz"

STICKY: Final = StickyTaskAssignor()


def read_problems() -> Iterator[dict[str, Any]]:
    with gzip.open(PROBLEMS, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def member_of(member: dict[str, Any]) -> TaskMember:
    offsets = {
        subtopology_id: {int(task): offset for task, offset in tasks.items()}
        for subtopology_id, tasks in member["task_offsets"].items()
    }
    return TaskMember(member["process_id"], member["active"], member["standby"], offsets)


def shown(tasks: AssignedTasks) -> dict[str, dict[str, list[int]]]:
    active, standby = (
        {subtopology_id: list(partitions) for subtopology_id, partitions in each.items()}
        for each in (tasks.active, tasks.standby)
    )
    return {"active": active, "standby": standby}


def test_every_recorded_problem_is_answered_as_kafka_does() -> None:
    wrong, count = [], 0
    for problem in read_problems():
        members = {member["member_id"]: member_of(member) for member in problem["members"]}
        subtopologies = {
            each["id"]: SubtopologyTasks(each["tasks"], each["stateful"]) for each in problem["subtopologies"]
        }
        answer = STICKY.assign(members, subtopologies, problem["num_standby_replicas"])
        count += 1
        if {member_id: shown(tasks) for member_id, tasks in answer.items()} != problem["assignment"]:
            wrong.append(problem["id"])
    assert (count, wrong) == (422, [])


def test_members_are_answered_in_their_order() -> None:
    members = {name: TaskMember(f"process of {name}") for name in ("m-3", "m-1", "m-2")}
    assert list(STICKY.assign(members, {"0": SubtopologyTasks(3)}, 0)) == ["m-3", "m-1", "m-2"]


def test_without_members_there_is_nothing_to_answer() -> None:
    assert STICKY.assign({}, {"0": SubtopologyTasks(3, is_stateful=True)}, 2) == {}


def test_an_active_task_goes_where_its_standby_was() -> None:
    before = {
        "a": TaskMember("p", standby={"0": [1]}),
        "b": TaskMember("q", standby={"0": [0]}),
    }
    answer = STICKY.assign(before, {"0": SubtopologyTasks(2, is_stateful=True)}, 1)
    assert answer == {"a": AssignedTasks({"0": (1,)}, {"0": (0,)}), "b": AssignedTasks({"0": (0,)}, {"0": (1,)})}


def test_a_process_never_has_a_task_twice_and_every_task_is_active_once() -> None:
    random = Random(7)
    for _ in range(200):
        members = {f"m-{n}": TaskMember(f"p-{random.randrange(4)}") for n in range(random.randrange(1, 9))}
        subtopologies = {
            str(n): SubtopologyTasks(random.randrange(6), is_stateful=random.random() < 0.7) for n in range(3)
        }
        for _ in range(3):
            replicas = random.randrange(3)
            answer = STICKY.assign(members, subtopologies, replicas)
            active = [task for tasks in answer.values() for task in each_of(tasks.active)]
            assert sorted(active) == sorted(
                (name, task) for name, of in subtopologies.items() for task in range(of.tasks)
            )
            in_processes = [
                (members[member_id].process_id, *task)
                for member_id, tasks in answer.items()
                for kind in (tasks.active, tasks.standby)
                for task in each_of(kind)
            ]
            assert len(in_processes) == len(set(in_processes))
            members = {
                member_id: TaskMember(member.process_id, answer[member_id].active, answer[member_id].standby)
                for member_id, member in members.items()
                if random.random() < 0.8
            } | {f"n-{random.randrange(9)}": TaskMember("p-0")}


def each_of(tasks: Any) -> Iterator[tuple[str, int]]:
    return ((name, task) for name, of in tasks.items() for task in of)


def test_a_first_target_is_that_of_queues_asked_for_each_task() -> None:
    """A member that had a task which is gone lets the assignor go the long way, and changes nothing else."""
    random = Random(11)
    for _ in range(400):
        processes, threads = random.randrange(1, 30), random.randrange(1, 5)
        each = [n // threads for n in range(processes * threads)]
        uneven = [random.randrange(processes) for _ in range(random.randrange(1, 40))]
        members = {f"m-{n}": TaskMember(f"p-{p}") for n, p in enumerate(random.choice((each, uneven)))}
        subtopologies = {
            str(n): SubtopologyTasks(random.choice((random.randrange(40), 2 * processes)), random.random() < 0.8)
            for n in range(random.randrange(1, 5))
        }
        replicas = random.randrange(4)
        before = members | {"m-0": members["m-0"]._replace(active={"0": [1_000_000]})}
        assert STICKY.assign(members, subtopologies, replicas) == STICKY.assign(before, subtopologies, replicas)


def test_a_first_target_takes_less_than_half_the_steps_of_the_long_way() -> None:
    members = {f"m-{n}": TaskMember(f"p-{n // 4}") for n in range(80)}
    before = members | {"m-0": members["m-0"]._replace(active={"0": [1_000_000]})}
    subtopologies = {str(n): SubtopologyTasks(80, is_stateful=True) for n in range(10)}
    first, long = (steps_of(partial(STICKY.assign, of, subtopologies, 1)) for of in (members, before))
    assert first < long / 2


def test_a_group_that_has_not_changed_keeps_its_assignment() -> None:
    members = {f"m-{n}": TaskMember(f"p-{n % 3}") for n in range(7)}
    subtopologies = {"0": SubtopologyTasks(20, is_stateful=True), "1": SubtopologyTasks(5)}
    first = STICKY.assign(members, subtopologies, 1)
    again = {
        member_id: TaskMember(member.process_id, first[member_id].active, first[member_id].standby)
        for member_id, member in members.items()
    }
    assert {member_id: tasks.active for member_id, tasks in STICKY.assign(again, subtopologies, 1).items()} == {
        member_id: tasks.active for member_id, tasks in first.items()
    }
