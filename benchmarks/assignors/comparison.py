"""How quick the assignors are: against the floor, against other Python clients, and against Java.

    python -m benchmarks.assignors                     # everything; peers may need a few minutes each
    python -m benchmarks.assignors --quick             # without peers where they are slow
    python -m benchmarks.assignors --java 'jars/*'     # with Kafka's own client, if these are its jars

The floor is the time to build the answer's lists of (topic, partition) tuples and nothing else, taken between
the runs it is compared with. Both sides of a ratio are measured by the same run of this script.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from rich.table import Table
from rich.text import Text

from benchmarks import printer
from benchmarks.assignors.problems import ODD_ONE, QUARTERS, ROTATING, SIZES, STRESS, Problem

OURS = "rejoin"
JAVA = "Kafka (Java)"
GIB = 2**30
REPEATS = 5
LARGE = 100_000
"""Partitions of a problem that peers are asked only once, when it has to be quick."""
COLUMNS = (("problem", 14), ("size", 17), ("assignor", 18), ("event", 5), ("who", 12))
NUMBERS = (("ms", 9), ("× floor", 7), ("× ours", 7), ("peak MiB", 8))
JAVA_SOURCE = Path(__file__).parent / "java" / "AssignorBenchmark.java"


@dataclass(frozen=True)
class Case:
    """One question, and who is asked besides ourselves."""

    problem: Problem
    assignor: str
    event: str
    peers: tuple[str, ...] = ()
    slow_peers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of it: seconds, or why not."""

    seconds: float | None
    floor_seconds: float | None = None
    peak_bytes: int | None = None
    failed: str = ""
    at_least_seconds: float | None = None


BRIEF_SECONDS: Final = 1e-4
OF_BRIEF: Final = 0.8
"""Of a problem that takes less than a tenth of a millisecond the ratio differs by so much from run to run."""

Verdict: TypeAlias = tuple[str, float, float, bool]
"""An aim, what was reached, what is wanted, and whether that is the most or the least."""


def cases() -> Iterator[Case]:
    """Every question, in the order of the table."""
    for assignor in ("sticky", "cooperative-sticky"):
        peers = ("kafka-python", "aiokafka") if assignor == "sticky" else ("kafka-python",)
        for event in ("fresh", "leave"):
            yield Case(STRESS, assignor, event, slow_peers=peers)
        for event in ("fresh", "leave"):
            yield Case(ROTATING, assignor, event, slow_peers=peers)
        for event in ("fresh", "leave"):
            yield Case(QUARTERS, assignor, event, slow_peers=peers)
        for event in ("fresh", "leave"):
            yield Case(ODD_ONE, assignor, event)
    for assignor in ("range", "roundrobin"):
        for size in SIZES:
            peers = ("kafka-python", "aiokafka")
            yield (
                Case(size, assignor, "fresh", slow_peers=peers)
                if size is STRESS
                else Case(size, assignor, "fresh", peers)
            )


def bench(
    *,
    quick: bool = False,
    only: str = "",
    repeats: int = REPEATS,
    limit_seconds: float = 300,
    memory_gib: float = 8,
    java: str = "",
) -> None:
    """Time the assignors and print a table.

    Parameters
    ----------
    quick
        Leave out the peers that need minutes, and ask the others once where there are many partitions.
    only
        Only the rows that contain this text, such as "sticky leave".
    repeats
        Runs of ours; the best one counts.
    limit_seconds
        How long one measurement may take, all repeats together.
    memory_gib
        How much memory one measurement may use.
    java
        A class path with Kafka's client, its slf4j-api, and javac's tools at hand.
    """
    # End cleanly, so that no worker outlives this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = printer()
    console.print("size: members × topics × partitions of each\n", _table(headings=True), sep="\n")
    verdicts: list[Verdict] = []
    last: Problem | None = None
    for case in cases():
        if not all(word in f"{case.problem.name} {case.assignor} {case.event}".split() for word in only.split()):
            continue
        if last not in (None, case.problem):
            console.print()
        last = case.problem
        with console.status(f"{case.problem.name} {case.assignor} {case.event}"):
            ours = _measure(OURS, case, repeats, limit_seconds, memory_gib)
            others = {
                peer: _measure(peer, case, _peer_repeats(case, repeats, quick=quick), limit_seconds, memory_gib)
                for peer in (*case.peers, *(() if quick else case.slow_peers))
            }
            if java:
                others[JAVA] = _measure_java(java, case, limit_seconds)
        rows = _table()
        _add_rows(rows, case, ours, others)
        console.print(rows)
        verdicts += _verdicts(case, ours, others)
    console.print()
    for aim, reached, wanted, at_most in verdicts:
        met = reached <= wanted if at_most else reached >= wanted
        mark = Text("✓ " if met else "✗ ", style="green" if met else "red")
        console.print(mark + Text(f"{aim}: {reached:.2f}, aim {'≤' if at_most else '≥'} {wanted:g}"))


def _table(*, headings: bool = False) -> Table:
    """The headings alone, or rows in columns as wide as those: each case is printed when it has been timed."""
    table = Table(box=None, pad_edge=False, show_header=headings)
    for heading, width in COLUMNS:
        table.add_column(heading, width=width, no_wrap=True)
    for heading, width in NUMBERS:
        table.add_column(heading, width=width, justify="right", no_wrap=True)
    return table


def _peer_repeats(case: Case, repeats: int, *, quick: bool) -> int:
    return 1 if case.slow_peers or (quick and case.problem.total >= LARGE) else repeats


def _measure(who: str, case: Case, repeats: int, limit_seconds: float, memory_gib: float) -> Result:
    asked = {
        "who": who,
        "assignor": case.assignor,
        "problem": case.problem.name,
        "event": case.event,
        "repeats": repeats,
        "memory_limit_bytes": int(memory_gib * GIB),
    }
    command = [sys.executable, "-m", "benchmarks.assignors.worker", json.dumps(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        return Result(None, failed=f"over {limit_seconds:g} s", at_least_seconds=limit_seconds)
    if done.returncode != 0 or not done.stdout.strip():
        return Result(None, failed="out of memory" if done.returncode < 0 else f"exit code {done.returncode}")
    result = json.loads(done.stdout)
    if "failed" in result:
        return Result(None, failed=result["failed"])
    return Result(result["seconds"], result["floor_seconds"], result["peak_bytes"])


def _measure_java(class_path: str, case: Case, limit_seconds: float) -> Result:
    problem = case.problem
    sizes = [str(size) for size in (problem.members, problem.topics, problem.partitions)]
    command = ["java", "-Xmx4g", "-cp", class_path, str(JAVA_SOURCE), case.assignor, case.event, problem.wishes, *sizes]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        return Result(None, failed=f"over {limit_seconds:g} s")
    if done.returncode != 0:
        return Result(None, failed=(done.stderr.strip().splitlines() or ["failed"])[-1][:40])
    seconds, peak = done.stdout.split()[-2:]
    return Result(float(seconds), None, int(peak))


def _add_rows(table: Table, case: Case, ours: Result, others: dict[str, Result]) -> None:
    problem = case.problem
    size = f"{problem.members} × {problem.topics} × {problem.partitions}"
    first = [problem.name, size, case.assignor, case.event]
    for who, result in {OURS: ours, **others}.items():
        if result.seconds is None:
            cells: list[Text | str] = [Text(result.failed, style="red"), "", "", ""]
        else:
            floor = ours.floor_seconds if who == JAVA else result.floor_seconds
            cells = [
                f"{result.seconds * 1000:,.3g}" if result.seconds < 1 else f"{result.seconds * 1000:,.0f}",
                f"{result.seconds / floor:.2f}" if floor else "",
                f"{result.seconds / ours.seconds:.2f}" if ours.seconds and who != OURS else "",
                f"{(result.peak_bytes or 0) / 2**20:,.0f}",
            ]
        table.add_row(*first, Text(who, style="bold" if who == OURS else ""), *cells)
        first = ["", "", "", ""]


def _verdicts(case: Case, ours: Result, others: dict[str, Result]) -> Iterator[Verdict]:
    """Each aim that this case is about."""
    if ours.seconds is None or ours.floor_seconds is None:
        return
    about = f"{case.problem.name}, {case.assignor}, {case.event}"
    if case.problem is STRESS and "sticky" in case.assignor:
        yield f"{about} × floor", ours.seconds / ours.floor_seconds, 1.5 if case.event == "fresh" else 4, True
    for peer, result in others.items():
        if peer == JAVA:
            continue
        if case.problem in {ROTATING, QUARTERS} and case.event == "fresh" and peer == "kafka-python":
            least = result.seconds or result.at_least_seconds
            if least is not None:
                yield f"{about}, {peer} × ours, at least", least / ours.seconds, 25, False
        if result.seconds is None:
            continue
        if "sticky" not in case.assignor:
            # Peers answer with a list of numbers for each topic. Where few members share large topics, the tuples
            # of a plain answer alone cost more than that.
            beyond = ", the floor alone is slower" if ours.floor_seconds > result.seconds else ""
            least = 1 if ours.seconds > BRIEF_SECONDS else OF_BRIEF
            yield f"{about}, {peer} × ours{beyond}", result.seconds / ours.seconds, least, False
