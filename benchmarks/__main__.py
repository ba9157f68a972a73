"""``python -m benchmarks [--long] [NAME ...]``: run the quick benchmarks, the long ones, or those named."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from time import perf_counter
from typing import Final

QUICK: Final = (
    "node_step",
    "start_up",
    "simulation",
    "http_heartbeats",
    "parked_joins",
    "commits",
    "report_page",
    "assignors",
)
"""Modules of this package with a ``main()``, each done in minutes, quickest first."""

LONG: Final = ("sweep", "recovered_from_logs", "load", "pipeline_tables")
"""Those that take longer. They run when they are named, and with ``--long``."""


def main(names: list[str]) -> int:
    """Run benchmarks one after the other, and say how long each took."""
    known = (*QUICK, *LONG)
    chosen = [*(LONG if "--long" in names else ()), *(name for name in names if name != "--long")]
    for name in chosen:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            print(
                f"there is no benchmark {name}; " + (f"is it {near[0]}?" if near else f"there are {', '.join(known)}")
            )
            return 2
    for name in chosen or QUICK:
        began = perf_counter()
        importlib.import_module(f"benchmarks.{name}").main()
        print(f"{name}: {perf_counter() - began:.0f} s\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
