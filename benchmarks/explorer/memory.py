"""Memory of an exploration of ten million states, measured: its tables are filled, and the look for ways is done.

Digests and edges are synthetic, 2 edges a state as small worlds have them. The states of two depths are kept as in an
exploration, as runs and as snapshots of a real world. With ``quick``: a hundredth of it.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from typing import Final

from rich.table import Table

from benchmarks import printer
from rejoin.simulation.explore.choosing import Choice, Kind
from rejoin.simulation.explore.liveness import Graph
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.states import KEPT, LIVE, Ancestry, Frontier, States
from rejoin.simulation.explore.world import WORLDS, read_world

STATES: Final = 10_000_000
QUICK_STATES: Final = 100_000
KEPT_STATES: Final = LIVE + KEPT
QUICK_KEPT: Final = 100
WORLD: Final = "failover_in_any_moment"
SETTLED: Final = 50
"""One state in so many is settled."""
NEAR: Final = 100_000
"""An edge that closes a diamond leads to a state that was met at most so long ago."""
BOUND_GB: Final = 16.0


def main(quick: bool = False) -> int:
    """Print peak memory after each part. Returns 1 where it exceeds the bound."""
    count, kept = (QUICK_STATES, QUICK_KEPT) if quick else (STATES, KEPT_STATES)
    table = Table("part", "bytes a state", "s of CPU", "peak memory, MB")
    states, graph = States(), Graph()

    began = time.process_time()
    frontiers = _frontiers(states, kept)
    table.add_row(f"two depths of {kept:,} states kept", "", *_since(began))

    began = time.process_time()
    _fill(states, graph, count)
    each = (states.size() + graph.size()) / count
    table.add_row(f"{count:,} states, {2 * count:,} edges", f"{each:.0f}", *_since(began))

    began = time.process_time()
    stuck = len(graph.stuck((), 0))
    table.add_row("the look for ways", "", *_since(began))
    printer().print(table)
    peak = _peak_bytes() / 1e9
    printer().print(
        f"{len(states):,} states, {stuck:,} of them without a way, {sum(map(len, frontiers)):,} kept: "
        f"{peak:.1f} GB, bound {BOUND_GB:.0f} GB: {'kept' if peak <= BOUND_GB else 'missed'}"
    )
    return int(peak > BOUND_GB)


def _frontiers(states: States, kept: int) -> list[Frontier]:
    """The states of two depths: one that is gone on from, and the one that comes of it."""
    root = ExploredRun(read_world(WORLDS / f"{WORLD}.yaml"))
    ancestry = Ancestry(root, states)
    frontiers = [Frontier(ancestry), Frontier(ancestry)]
    for frontier in frontiers:
        for state in range(kept):
            run = root.copy() if state < LIVE else root
            frontier.add(state, run)
        for _ in range(10):
            root.take(root.choices()[0])
    return frontiers


def _fill(states: States, graph: Graph, count: int) -> None:
    """Each state has an edge from its parent, and one from another state not far from it."""
    digests, step = random.Random(1), Choice(Kind.ARRIVE, 0)
    for number in range(count):
        digest, parent = digests.randbytes(16), max(0, number - 1) // 2
        known = states.number_of(digest)
        assert known is None, "digests are random"
        states.add(digest, parent, number % 4)
        graph.add(number % SETTLED == 0)
        graph.edge(parent, step, number)
        graph.edge(number, step, max(0, number - digest[0] * NEAR // 256))


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1_024 * peak


def _since(began: float) -> tuple[str, str]:
    return f"{time.process_time() - began:.0f}", f"{_peak_bytes() / 1e6:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
