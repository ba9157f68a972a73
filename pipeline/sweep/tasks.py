"""Plays one run of a sweep, anywhere: a function of what it is given, so a repeated task changes nothing."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.pipeline.sweep.tables import FAILED, JOURNAL, OK, numbers, totals
from rejoin.simulation.kernel import Actor, Millis, SelectiveListener
from rejoin.simulation.output.accounting import Ledger
from rejoin.simulation.output.summary import COUNTED_EVENTS, GroupSummary, Summary, SummaryCounter
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.simulation import Simulation

LONGEST_ERROR: Final = 2_000


@dataclass(frozen=True, slots=True)
class Task:
    """One run: ``scenario`` as JSON, counted from ``count_from_ms`` on; ``events``: with its journal."""

    key: str
    seed: int
    scenario: str
    count_from_ms: int
    events: bool
    code_version: str


def play_task(task: Task) -> dict[str, Any]:
    """The row of a run (:data:`rejoin.pipeline.sweep.tables.PLAYED`). An error of the run is in the row."""
    began = time.perf_counter()
    journal: str | None = None
    summary: Summary | None = None
    error: str | None = None
    try:
        summary, journal = _played(task)
        if summary.core_failures:
            error = f"the coordinator's core failed {summary.core_failures} times: that is a bug, please report it"
    except Exception as problem:
        error = one_line(problem)
    groups = [] if summary is None else [{"group_id": name, **numbers(of)} for name, of in summary.groups.items()]
    return {
        "run_key": task.key,
        "seed": task.seed,
        "status": OK if error is None else FAILED,
        "error": error,
        "code_version": task.code_version,
        "horizon_ms": None if summary is None else summary.horizon_ms,
        "steps": None if summary is None else summary.steps,
        **({} if summary is None else totals(groups)),
        "groups": groups,
        "wall_ms": round((time.perf_counter() - began) * 1000),
        "executor": executor(),
        "pid": os.getpid(),
        JOURNAL: journal,
    }


def failed(task: Task, error: str) -> dict[str, Any]:
    """The row of a run that killed its process."""
    return {
        "run_key": task.key,
        "seed": task.seed,
        "status": FAILED,
        "error": error[:LONGEST_ERROR],
        "code_version": task.code_version,
        "groups": [],
    }


def one_line(problem: BaseException) -> str:
    """An error in one line: what, and where in the code."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}{': ' if text else ''}{text}{where}"[:LONGEST_ERROR]


@lru_cache(maxsize=1)
def executor() -> str:
    """The id of the executor whose process this is, as its JVM's command line has it; ``local`` without one."""
    pid = os.getppid()
    for _ in range(4):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        if b"--executor-id" in words:
            return words[words.index(b"--executor-id") + 1].decode()
        pid = int(status.rpartition(")")[2].split()[1])
    return "local"


@lru_cache(maxsize=8)
def _scenario(text: str) -> Scenario:
    return Scenario.model_validate_json(text)


def _played(task: Task) -> tuple[Summary, str | None]:
    counter = WindowCounter(task.count_from_ms)
    with tempfile.TemporaryDirectory() if task.events else nullcontext() as folder:
        path = None if folder is None else Path(folder) / "journal.jsonl"
        simulation, summary = play(
            _scenario(task.scenario),
            task.seed,
            listeners=[SelectiveListener(counter.on_event, COUNTED_EVENTS)],
            journal=path,
            run_id=task.key,
            prepare=counter.prepare,
        )
        counter.correct(simulation, summary)
        return summary, None if path is None else path.read_text(encoding="utf-8")


class WindowCounter:
    """Counts only what happens from an instant on. A rebalance that goes on then counts as completed, not as begun."""

    def __init__(self, count_from_ms: Millis) -> None:
        self._from = count_from_ms
        self._counter = SummaryCounter()
        self._lost: dict[tuple[str, str, int], int] = {}

    def prepare(self, simulation: Simulation) -> None:
        """Have the simulation begin anew in the middle of the run."""
        if self._from:
            simulation.world.control(self._from, self._begin_anew, simulation)

    def on_event(self, actor: Actor, event: Event, now: Millis) -> None:
        """Count an event."""
        self._counter.on_event(actor, event, now)

    def correct(self, simulation: Simulation, summary: Summary) -> None:
        """Take out of a summary what happened before."""
        if not self._from:
            return
        counted = self._counter.groups
        for group_id, group in summary.groups.items():
            later = counted.get(group_id, GroupSummary(group_id))
            for name in ("rebalances", "completed", "longest_rebalance_ms", "rebalancing_ms", "moved"):
                setattr(group, name, getattr(later, name))
            for name in ("removed", "static_returns", "fenced"):
                setattr(group, name, getattr(later, name))
        for (group_id, topic, partition), before in self._lost.items():
            summary.groups[group_id].lost -= min(
                before, _lost(simulation.accounting.ledgers[group_id, topic, partition])
            )

    def _begin_anew(self, simulation: Simulation) -> None:
        now = simulation.world.now
        self._counter = SummaryCounter()
        simulation.ownership.stopped_ms.clear()
        for client in simulation.ownership.clients.values():
            client.stopped_since = None if client.stopped_since is None else now
        for partition in simulation.ownership.partitions.values():
            partition.unowned_ms = partition.worst_ms = 0
            partition.free_since = None if partition.free_since is None else now
        for key, ledger in simulation.accounting.ledgers.items():
            ledger.processed = ledger.twice = ledger.late = 0
            self._lost[key] = _lost(ledger)


def _lost(ledger: Ledger) -> int:
    return sum(gap.end - gap.start for gap in ledger.lost())
