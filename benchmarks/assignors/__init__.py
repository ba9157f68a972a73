"""What an assignment costs: our assignors beside those of other clients, and Kafka's own."""

from __future__ import annotations

REPEATS = 5
"""How often each is timed."""

ONLY = ""
"""Words that a case must have; none: all cases."""


def main(*, quick: bool = False) -> None:
    """``quick`` leaves out the peers that need minutes."""
    # A worker imports this package and is measured: it gets nothing that it does not need.
    from benchmarks.assignors.comparison import bench  # noqa: PLC0415

    bench(quick=quick, only=ONLY, repeats=REPEATS)
