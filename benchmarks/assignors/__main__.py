"""``python -m benchmarks.assignors``."""

from __future__ import annotations

from cyclopts import run

from benchmarks.assignors.comparison import bench

run(bench)
