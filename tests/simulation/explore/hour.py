"""All worlds for some time: states, depth, branching, and what they reach of the coordinator."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

from rejoin.simulation.explore.explorer import Reached, explore
from rejoin.simulation.explore.world import WORLDS, read_world
from rejoin.transcript.player import play
from tests.simulation.explore import coverage

TRANSCRIPTS = Path(__file__).parents[2] / "transcripts"
DEEPEST = 10_000


class TimeIsOver(Exception):
    """A world has had its share of the time."""


def _look(until: float, latest: list[Reached], now: Reached) -> None:
    latest[0] = now
    if time.monotonic() > until:
        raise TimeIsOver


def main(minutes: float) -> None:
    """Print the table of worlds, and what they reach beside what the transcripts of the tests reach."""
    paths = sorted(WORLDS.glob("*.yaml"))
    share = 60 * minutes / len(paths)
    print("| world | states | steps | depth | states from one depth to the next | found |")
    print("|---|---|---|---|---|---|")
    with coverage.recorded() as reached:
        for path in paths:
            until, last = time.monotonic() + share, Reached(0, 0, 0, 0, 0.0)

            try:
                found = explore(read_world(path), depth=DEEPEST, on_progress=partial(_look, until, latest := [last]))
            except TimeIsOver:
                last = latest[0]
                branching = last.states ** (1 / max(1, last.depth))
                print(
                    f"| {path.stem} | {last.states:,} | {last.edges:,} | {last.depth} | {branching:.2f} | nothing |",
                    flush=True,
                )
                continue
            depth = len(found.by_depth) - 1
            broken = "nothing" if found.counterexample is None else found.counterexample.check.replace("_", " ")
            print(f"| {path.stem} | {found.states:,} | {found.edges:,} | {depth}, all | | {broken} |", flush=True)
    with coverage.recorded() as played:
        for path in sorted(TRANSCRIPTS.rglob("*.txt")):
            play(path.read_text(encoding="utf-8"))
    print(
        f"\nState of a group or transaction, API and error: worlds reach {len(reached)}, transcripts {len(played)}, "
        f"both {len(reached & played)}; only worlds:"
    )
    for state, api, code in sorted(reached - played):
        print(f"  {api} in {state}: {code}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
