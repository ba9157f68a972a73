"""The next states of some paths, each path played from the last step that it shares with the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.observations import Violation


class Edge(NamedTuple):
    """A step from one state to the next: the path with it, one byte for each step, and where it leads.

    ``digest`` is empty where the step breaks a rule; then ``check`` and ``text`` say which.
    """

    digest: bytes
    path: bytes
    check: str = ""
    text: str = ""


def expanded(scenario: Scenario, paths: Iterable[bytes]) -> Iterator[Edge]:
    """Every step from the states at the ends of these paths. Neighbours in the order of paths share what is played."""
    runs = [ExploredRun(scenario)]
    taken = b""
    for path in sorted(paths):
        shared = next((at for at, pair in enumerate(zip(taken, path, strict=False)) if pair[0] != pair[1]), None)
        if shared is None:
            shared = min(len(taken), len(path))
        del runs[shared + 1 :]
        for number in path[shared:]:
            run = runs[-1].copy()
            run.take(run.choices()[number])
            runs.append(run)
        taken = path
        for number, choice in enumerate(runs[-1].choices()):
            made, there = runs[-1].copy(), path + bytes((number,))
            try:
                made.take(choice)
            except Violation as violation:
                yield Edge(b"", there, violation.check, violation.text)
            else:
                yield Edge(made.digest(), there)
