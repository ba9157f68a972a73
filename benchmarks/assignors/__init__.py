"""What an assignment costs: our assignors beside those of other clients, and Kafka's own."""

from __future__ import annotations

REPEATS = 5
"""How often each is timed."""

ONLY = ""
"""Words that a case must have; none: all cases."""


def main() -> None:
    """The peers that need minutes are left out; ``python -m benchmarks.assignors`` has them."""
    # A worker imports this package and is measured: it gets nothing that it does not need.
    from benchmarks.assignors.comparison import bench  # noqa: PLC0415

    bench(quick=True, only=ONLY, repeats=REPEATS)
