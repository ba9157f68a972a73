"""Times one assignor on one problem, in a process of its own so that its memory is measured alone.

Started by benchmarks.assignors with a JSON object as its argument; prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import logging
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.assignors.peers import prepare
from benchmarks.assignors.problems import PROBLEMS, Problem, floor_of
from rejoin.client.assignors import assignor_named

OURS = "rejoin"


def measure(who: str, assignor: str, problem: Problem, event: str, repeats: int) -> dict[str, Any]:
    """Best time in seconds of `repeats` runs, the floor's in between them, and the peak in bytes of one run.

    `event`: `fresh`, or `leave`, which is timed on the answer to `fresh`.
    """
    members = problem.fresh()
    ours = assignor_named(assignor)
    if event == "leave":
        members = problem.after_leaving(assignor, ours.assign(problem.cluster, members))
    cluster = problem.cluster

    def ask_ours() -> Any:
        return ours.assign(cluster, members)

    ask = ask_ours if who == OURS else prepare(who, assignor, cluster, members).ask
    gc.collect()
    before = _start_of_peak()
    started = time.perf_counter()
    answer = ask()
    times = [time.perf_counter() - started]
    peak = _peak() - before
    if who != OURS:
        del answer
        answer = ours.assign(cluster, members)
    floors = [_timed(lambda: floor_of(answer), 1)]
    # Small problems are over before the clock is warm, and are timed many at once.
    calls = max(1, min(200, 20_000 // problem.total))
    for _ in range(repeats - 1):
        gc.collect()
        times.append(_timed(ask, calls))
        gc.collect()
        floors.append(_timed(lambda: floor_of(answer), calls))
    return {"seconds": min(times), "floor_seconds": min(floors), "peak_bytes": peak}


def _timed(work: Callable[[], Any], calls: int) -> float:
    """Seconds a call takes until the result is there; for a single one, throwing it away is not counted."""
    started = time.perf_counter()
    for _ in range(calls - 1):
        work()
    result = work()
    taken = time.perf_counter() - started
    del result
    return taken / calls


def _start_of_peak() -> int:
    """Bytes in use now, from which on the kernel watches for a new peak."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} here")


def main() -> None:
    """Measure what the argument says; running out of memory is a result too."""
    asked = json.loads(sys.argv[1])
    logging.disable(logging.CRITICAL)
    limit = asked["memory_limit_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        result = measure(asked["who"], asked["assignor"], PROBLEMS[asked["problem"]], asked["event"], asked["repeats"])
    except MemoryError:
        result = {"failed": "out of memory"}
    except Exception as error:
        result = {"failed": type(error).__name__}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
