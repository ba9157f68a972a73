"""What a target assignment costs: the server-side assignors beside the floor of building its lists, and Kafka's own.

The floor is the time to build the answer's lists by member and topic and nothing else, taken between the runs that it
is compared with. CPU seconds, the best of some rounds. Kafka's are asked the same in the same run, where Java and Maven
are there: wall time without the collector, the best of up to 30.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Final, TypeAlias

from rich.table import Table

from benchmarks import printer
from rejoin.coordinator.core.groups.consumer.assignors import (
    Assignments,
    AssignorMember,
    SubscriptionKind,
    assignors_of,
)

PARTITIONS = 100_000
MEMBERS = 1_000
TOPICS = (1, 100, 1_000)
ROUNDS = 7
JAVA = True
"""Whether Kafka's own are measured, where Java is there."""
AIM: Final = 3.0
"""The most floors that the uniform assignor may take where all subscribe alike."""

_WISHES: Final = ("equal", "one wants less", "each half")
"""All want all topics; the last member wants one only; each member wants half of them, beginning one further on."""


Ask: TypeAlias = Callable[[str], str]
"""Kafka's answer to a problem: milliseconds, and counts that its Java program adds."""

_SOURCE: Final = Path(__file__).parent / "assignors" / "java" / "ServerAssignorBenchmark.java"


def main() -> int:
    """Print a row for each number of topics, wish, assignor and event. Returns 1 where the aim is missed."""
    table = Table(box=None, pad_edge=False)
    for heading in ("topics", "who wants what", "assignor", "event", "ms", "floor, ms", "× floor", "Kafka, ms"):
        table.add_column(heading, justify="left" if heading in ("who wants what", "assignor", "event") else "right")
    worst = 0.0
    with kafka(_SOURCE) as ask:
        for topics in TOPICS:
            for wish in _WISHES if topics > 1 else _WISHES[:1]:
                for name in ("uniform", "range"):
                    for event, ms, floor in _measured(topics, wish, name):
                        problem = f"{topics},{PARTITIONS // topics},{MEMBERS},{wish},{name},{event}"
                        theirs = "" if ask is None else f"{float(ask(problem)):.2f}"
                        row = (f"{ms:.2f}", f"{floor:.2f}", f"{ms / floor:.2f}", theirs)
                        table.add_row(str(topics), wish, name, event, *row)
                        if name == "uniform" and wish == "equal":
                            worst = max(worst, ms / floor)
    console = printer()
    console.print(f"{PARTITIONS:,} partitions, {MEMBERS:,} members", table, sep="\n")
    console.print(f"uniform, equal subscriptions: {worst:.2f} × floor, aim ≤ {AIM:g}")
    if ask is None:
        console.print("Kafka's own are left out: they want Java and Maven")
    return int(worst > AIM)


@contextmanager
def kafka(source: Path) -> Iterator[Ask | None]:
    """Kafka's assignors in one Java, asked by the program ``source``; none where Java or Maven is not there."""
    if not JAVA or not shutil.which("java") or not shutil.which("mvn"):
        yield None
        return
    from conformance.kafka.broker import class_path  # noqa: PLC0415

    command = ("java", "-Xmx4g", "-cp", asyncio.run(class_path()), str(source))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as java:
        yield partial(_asked, java)
        assert java.stdin is not None, "it is a pipe"
        java.stdin.close()


def _asked(java: subprocess.Popen[str], problem: str) -> str:
    assert java.stdin is not None, "it is a pipe"
    assert java.stdout is not None, "it is a pipe"
    print(problem, file=java.stdin, flush=True)
    return java.stdout.readline()


def _measured(topics: int, wish: str, name: str) -> list[tuple[str, float, float]]:
    assignor = assignors_of(name)[name]
    ids = [f"{number:021d}A" for number in range(topics)]
    counts = dict.fromkeys(ids, PARTITIONS // topics)
    kind = SubscriptionKind.HOMOGENEOUS if wish == "equal" else SubscriptionKind.HETEROGENEOUS
    fresh = {f"m-{n:04d}": AssignorMember(topic_ids=_wanted(ids, wish, n)) for n in range(MEMBERS)}
    before = {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in target.items()}
        for member_id, target in assignor.assign(fresh, counts, kind).items()
    }
    leaver = f"m-{MEMBERS // 2:04d}"
    rest = {
        member_id: AssignorMember(topic_ids=member.topic_ids, target=before.get(member_id, {}))
        for member_id, member in fresh.items()
        if member_id != leaver
    }
    return [(event, *_timed(partial(assignor.assign, of, counts, kind))) for event, of in _events(fresh, rest)]


def _events(fresh: dict[str, AssignorMember], rest: dict[str, AssignorMember]) -> list[tuple[str, Any]]:
    return [("fresh", fresh), ("one leaves", rest)]


def _wanted(ids: list[str], wish: str, member: int) -> dict[str, None]:
    if wish == "equal":
        return dict.fromkeys(ids)
    if wish == "one wants less":
        return dict.fromkeys(ids[:1] if member == MEMBERS - 1 else ids)
    return dict.fromkeys(ids[(member + step) % len(ids)] for step in range(len(ids) // 2))


def _timed(assign: Callable[[], Assignments]) -> tuple[float, float]:
    """Milliseconds of an assignment, and of building its lists."""
    answer = assign()
    taken, floor = [], []
    for _ in range(ROUNDS):
        taken.append(_ms(assign))
        floor.append(_ms(lambda: {m: {t: list(ps) for t, ps in target.items()} for m, target in answer.items()}))
    return min(taken), min(floor)


def _ms(work: Callable[[], Any]) -> float:
    gc.collect()
    began = process_time()
    result = work()
    taken = process_time() - began
    del result
    return taken * 1_000
