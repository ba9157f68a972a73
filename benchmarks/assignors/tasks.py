"""The cost of a target of a streams group: the assignor ``sticky`` beside Kafka's own class, warm, in one run.

CPU time of one assignment, the best of some. The Java program is asked for the same problems, where Java and Maven are
there, and has to give as many active and standby tasks.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

from rich.table import Table

from benchmarks import printer, server_assignors
from rejoin.coordinator.core.groups.streams.assignors.base import AssignedTasks, SubtopologyTasks, TaskMember
from rejoin.coordinator.core.groups.streams.assignors.sticky import StickyTaskAssignor

MEMBERS = 1_000
SUBTOPOLOGIES = 10
TASKS = 10_000
"""Of all subtopologies."""
ROUNDS = 7
JAVA = True
"""Whether Kafka's own is measured, where Java is there."""
AIM: Final = 2.0
"""The most times of Kafka's class that an assignment may take, with four members in every process."""
UNEVEN_BOUND: Final = 6.0
"""Groups whose processes differ in size: loads then do not rise in rounds, and each task goes through a heap."""

_SOURCE: Final = Path(__file__).parent / "java" / "TaskAssignorBenchmark.java"


class Problem(NamedTuple):
    """Members of one process, standbys of each task, and what happens to a group that has its tasks."""

    per_process: int
    standbys: int
    event: str

    @property
    def is_even(self) -> bool:
        """True where all processes have equally many members before the event."""
        return MEMBERS % self.per_process == 0

    @property
    def line(self) -> str:
        """The problem as the Java program reads it."""
        words = (SUBTOPOLOGIES, TASKS // SUBTOPOLOGIES, MEMBERS, self.per_process, self.standbys, self.event)
        return ",".join(map(str, words))


PROBLEMS: Final = (
    *(Problem(4, standbys, event) for standbys in (0, 1) for event in ("fresh", "one joins")),
    *(Problem(3, standbys, "fresh") for standbys in (0, 1)),
)


def main() -> int:
    """Print a row for each problem. Returns 1 where the aim or the bound is missed."""
    table = Table(box=None, pad_edge=False)
    for heading in ("members of a process", "standbys", "event", "ms", "Kafka, ms", "× Kafka"):
        table.add_column(heading, justify="left" if heading == "event" else "right")
    worst = {True: 0.0, False: 0.0}
    with server_assignors.kafka(_SOURCE) if JAVA else nullcontext() as ask:
        for problem in PROBLEMS:
            ms, counts = measured(problem)
            cells = ["", ""]
            if ask is not None:
                theirs, *their_counts = ask(problem.line).split()
                assert their_counts == [*map(str, counts)], f"{problem}: {counts} tasks, Kafka gives {their_counts}"
                worst[problem.is_even] = max(worst[problem.is_even], ms / float(theirs))
                cells = [f"{float(theirs):.1f}", f"{ms / float(theirs):.2f}"]
            table.add_row(str(problem.per_process), str(problem.standbys), problem.event, f"{ms:.1f}", *cells)
    console = printer()
    console.print(f"{TASKS:,} tasks, {MEMBERS:,} members", table, sep="\n")
    if ask is None:
        console.print("Kafka's own is left out: it wants Java and Maven")
    else:
        console.print(f"sticky: {worst[True]:.2f} × Kafka's own class at most, aim ≤ {AIM:g}")
        console.print(f"where the processes differ in size: {worst[False]:.2f} × at most, bound {UNEVEN_BOUND:g}")
    return int(worst[True] > AIM or worst[False] > UNEVEN_BOUND)


def measured(problem: Problem) -> tuple[float, tuple[int, int]]:
    """Milliseconds of an assignment, and its numbers of active and standby tasks."""
    assign = assignment(problem)
    taken = []
    for _ in range(ROUNDS):
        gc.collect()
        began = process_time()
        answer = assign()
        taken.append(process_time() - began)
    active = sum(_size(each.active) for each in answer.values())
    return min(taken) * 1_000, (active, sum(_size(each.standby) for each in answer.values()))


def assignment(problem: Problem) -> Callable[[], dict[str, AssignedTasks]]:
    """The assignment that a problem asks for."""
    assignor = StickyTaskAssignor()
    subtopologies = {str(number): SubtopologyTasks(TASKS // SUBTOPOLOGIES, True) for number in range(SUBTOPOLOGIES)}
    members = {f"m-{n:04d}": TaskMember(f"process-{n // problem.per_process}") for n in range(MEMBERS)}
    if problem.event != "fresh":
        before = assignor.assign(members, subtopologies, problem.standbys)
        members = {
            member_id: member._replace(active=_sets(before[member_id].active), standby=_sets(before[member_id].standby))
            for member_id, member in members.items()
        }
    if problem.event == "one joins":
        members[f"m-{MEMBERS:04d}"] = TaskMember(f"process-{MEMBERS // problem.per_process}")
    elif problem.event == "one leaves":
        del members[f"m-{MEMBERS // 2:04d}"]
    return partial(assignor.assign, members, subtopologies, problem.standbys)


def _sets(tasks: Mapping[str, Collection[int]]) -> dict[str, frozenset[int]]:
    return {each: frozenset(partitions) for each, partitions in tasks.items()}


def _size(tasks: Mapping[str, Collection[int]]) -> int:
    return sum(map(len, tasks.values()))


if __name__ == "__main__":
    sys.exit(main())
