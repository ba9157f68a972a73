"""``python -m benchmarks [--long] [--quick] [NAME ...]``: run the short benchmarks, the long ones, or those named.

``python -m benchmarks recovered.from_excerpts FOLDER ...`` reads the logs of these folders.
"""

from __future__ import annotations

import importlib
import resource
import sys
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import Final

SHORT: Final = (
    "node_step",
    "kafka.codec",
    "large_requests",
    "start_up",
    "simulation",
    "heartbeats.http",
    "heartbeats.kafka",
    "kafka.authorization",
    "kafka.batches",
    "kafka.producers",
    "kafka.connections",
    "kafka.consuming",
    "kafka.share_groups",
    "proxy.speed",
    "parked_joins",
    "transactions.markers",
    "transactions.aborted",
    "transactions.rate",
    "commits",
    "report.page",
    "report.time",
    "assignors",
    "server_assignors",
    "assignors.tasks",
    "heartbeats.consumer",
    "explorer.states",
    "recovered.from_client_logs",
    "recovered.from_written_client_logs",
    "recovered.from_excerpts",
)
"""Modules of this package with a ``main()``, each done in minutes with ``--quick``, quickest first."""

LONG: Final = (
    "kafka.throughput",
    "kafka.share_peers",
    "explorer.memory",
    "sweep",
    "report.watch",
    "recovered_from_logs",
    "load",
    "pipeline_tables",
)
"""Those that take longer. They run when they are named, and with ``--long``."""


HAS_QUICK: Final = ("commits", "report.time", "assignors", "kafka.throughput", "proxy.speed", "explorer.memory")
"""Benchmarks whose ``main()`` measures less when it is called with ``quick``."""


HAS_FOLDERS: Final = ("recovered.from_excerpts",)
"""Benchmarks whose ``main()`` takes folders of logs."""


def main(arguments: list[str]) -> int:
    """Run benchmarks one after the other, and say what each took. Returns 1 if one missed its bound."""
    known = (*SHORT, *LONG)
    options, names = set(arguments) & {"--long", "--quick"}, [each for each in arguments if not each.startswith("--")]
    folders = [Path(each) for each in names if each not in known and Path(each).is_dir()]
    names = [each for each in names if Path(each) not in folders]
    if folders and not set(names) & set(HAS_FOLDERS):
        print(f"{folders[0]}: a folder of logs; expected one of {', '.join(HAS_FOLDERS)} before it")
        return 2
    for name in (each for each in arguments if each not in (*known, *options) and Path(each) not in folders):
        near = get_close_matches(name, (*known, "--long", "--quick"), n=1)
        print(f"there is no benchmark {name}; " + (f"is it {near[0]}?" if near else f"there are {', '.join(known)}"))
        return 2
    first, failed = perf_counter(), False
    for name in [*(LONG if "--long" in options else ()), *names] or SHORT:
        began, used = perf_counter(), cpu_seconds()
        run = importlib.import_module(f"benchmarks.{name}").main
        given = [folders] if folders and name in HAS_FOLDERS else []
        failed |= bool(run(*given, **({"quick": True} if "--quick" in options and name in HAS_QUICK else {})))
        print(f"{name}: {perf_counter() - began:.0f} s, {cpu_seconds() - used:.0f} s of CPU\n", file=sys.stderr)
    print(f"all of it: {perf_counter() - first:.0f} s, {cpu_seconds():.0f} s of CPU", file=sys.stderr)
    return int(failed)


def cpu_seconds() -> float:
    """What this process and the children that have ended have used: a busy machine changes it less than the time."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
