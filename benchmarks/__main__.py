"""``python -m benchmarks [--long] [--quick] [NAME ...]``: run the short benchmarks, the long ones, or those named."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
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
    "kafka.batches",
    "kafka.producers",
    "kafka.connections",
    "parked_joins",
    "commits",
    "report.page",
    "report.time",
    "assignors",
)
"""Modules of this package with a ``main()``, each done in minutes with ``--quick``, quickest first."""

LONG: Final = ("kafka.throughput", "sweep", "recovered_from_logs", "load", "pipeline_tables")
"""Those that take longer. They run when they are named, and with ``--long``."""


HAS_QUICK: Final = ("commits", "report.time", "assignors")
"""Those whose ``main()`` leaves something out, or takes fewer rounds, when it is called with ``quick``."""


def main(arguments: list[str]) -> int:
    """Run benchmarks one after the other, and say how long each took."""
    known = (*SHORT, *LONG)
    options, names = set(arguments) & {"--long", "--quick"}, [each for each in arguments if not each.startswith("--")]
    for name in (each for each in arguments if each not in (*known, *options)):
        near = get_close_matches(name, (*known, "--long", "--quick"), n=1)
        print(f"there is no benchmark {name}; " + (f"is it {near[0]}?" if near else f"there are {', '.join(known)}"))
        return 2
    first = perf_counter()
    for name in [*(LONG if "--long" in options else ()), *names] or SHORT:
        began = perf_counter()
        run = importlib.import_module(f"benchmarks.{name}").main
        if "--quick" in options and name in HAS_QUICK:
            run(quick=True)
        else:
            run()
        print(f"{name}: {perf_counter() - began:.0f} s\n", file=sys.stderr)
    print(f"all of it: {perf_counter() - first:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
