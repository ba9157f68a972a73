"""``python -m benchmarks [NAME ...]``: run all benchmarks, or those named. Each prints a table of its own."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Final

REGISTERED: Final = (
    "node_step",
    "start_up",
    "simulation",
    "http_heartbeats",
    "parked_joins",
    "assignors",
    "commits",
    "load",
    "report_page",
    "recovered_from_logs",
    "sweep",
    "pipeline_tables",
)
"""Modules of this package with a ``main()``, quickest first."""


def main(names: list[str]) -> int:
    """Run benchmarks one after the other."""
    present = [name for name in REGISTERED if find_spec(f"benchmarks.{name}") is not None]
    for name in names:
        if name not in present:
            near = get_close_matches(name, present, n=1)
            print(f"there is no benchmark {name}; " + (f"is it {near[0]}?" if near else f"there are {present}"))
            return 2
    for name in names or present:
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
