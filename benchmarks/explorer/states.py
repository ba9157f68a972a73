"""Exploration of small worlds: states a second, beside a floor of copying the snapshot and stepping once.

For each world: edges and states a second of CPU time, the floor, the part of the time that the canonical form takes,
how many steps sleep sets spare, and the bytes of a snapshot. ``explorer.memory`` measures what many states take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.simulation.explore.copying import RunSnapshot
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import world_from

STATES: Final = 150
_GROUP: Final = (
    "topics: {{t: {{partitions: 2}}}}\ngroups: {{g: {{topics: [t], consumers: {}{}}}}}\nexplore: {{faults: 0}}"
)

WORLDS: Final = {
    "classic, 2 members": _GROUP.format(2, ""),
    "classic, 3 members": _GROUP.format(3, ""),
    "consumer, 2 members": _GROUP.format(2, ", protocol: consumer"),
    "share, 2 members": _GROUP.format(2, ", protocol: share, commit: after"),
}


@dataclass
class Times:
    """CPU time of one function, in seconds, over all of its calls."""

    seconds: float = 0.0
    calls: int = 0

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            began = time.process_time()
            try:
                return function(*arguments, **keywords)
            finally:
                self.seconds += time.process_time() - began
                self.calls += 1

        return timed


def main() -> None:
    """Print a row for each world."""
    table = Table("world", "states/s", "edges/s", "floor, edges/s", "form", "edges spared", "snapshot, bytes")
    for name, text in WORLDS.items():
        table.add_row(name, *_measured(text))
    printer().print(table)


def _measured(text: str) -> list[str]:
    world = world_from(text)
    copies, steps, forms, snapshots = Times(), Times(), Times(), Times()
    originals = RunSnapshot.restore, ExploredRun.take, ExploredRun.digest, RunSnapshot.__init__
    RunSnapshot.restore = copies.of(RunSnapshot.restore)  # type: ignore[method-assign]
    ExploredRun.take = steps.of(ExploredRun.take)  # type: ignore[method-assign]
    ExploredRun.digest = forms.of(ExploredRun.digest)  # type: ignore[method-assign]
    RunSnapshot.__init__ = snapshots.of(RunSnapshot.__init__)  # type: ignore[method-assign]
    began = time.process_time()
    try:
        found = explore(world, depth=1_000, most_states=STATES, liveness=False)
    finally:
        RunSnapshot.restore, ExploredRun.take, ExploredRun.digest, RunSnapshot.__init__ = originals  # type: ignore[method-assign]
    seconds = time.process_time() - began
    floor = copies.seconds / max(1, copies.calls) + steps.seconds / max(1, steps.calls)
    return [
        f"{found.states / seconds:.0f}",
        f"{found.edges / seconds:.0f}",
        f"{1 / floor:.0f}",
        f"{forms.seconds / seconds:.0%}",
        _spared(text, len(found.by_depth) - 1, found.edges),
        str(len(RunSnapshot(ExploredRun(world)))),
    ]


def _spared(text: str, depth: int, edges: int) -> str:
    if "share" in text:
        return "-"
    reduced = explore(world_from(text), depth=depth, liveness=False, reduction=True)
    return f"{1 - reduced.edges / edges:.0%}"


if __name__ == "__main__":
    main()
