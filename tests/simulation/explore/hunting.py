"""Which world finds a broken rule, and how deep: the table of ``make explore-mutations``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.liveness import NO_WAY
from rejoin.simulation.explore.world import WORLDS, read_world
from rejoin.simulation.scenario.model import Scenario
from tests.simulation.explore.mutations import MORE
from tests.simulation.search import migration_mutations, mutations
from tests.simulation.search.mutations import Mutation
from tests.simulation.search.test_search import first_seed

STATES = 6_000
"""A world that has met so many states gives way to the next one."""


@dataclass(frozen=True)
class Hunted:
    """A broken rule that a world has found."""

    mutation: str
    world: str
    check: str
    depth: int
    states: int
    seconds: float


def worlds() -> dict[str, Scenario]:
    """The worlds that come with rejoin, smallest first."""
    found = {path.stem: read_world(path) for path in WORLDS.glob("*.yaml")}
    return dict(sorted(found.items(), key=lambda each: (each[1].explore is None or each[1].explore.faults, each[0])))


def hunt(mutation: Mutation, among: Iterable[str], states: int = STATES) -> Hunted | None:
    """Explore one world after the other until one finds the broken rule."""
    known = worlds()
    began = time.process_time()
    for name in among:
        with pytest.MonkeyPatch.context() as patch:
            mutation.apply(patch)
            found = explore(known[name], most_states=states)
        broken = found.counterexample
        if broken is not None and "TypeError" not in broken.text:
            seconds = time.process_time() - began
            return Hunted(mutation.name, name, broken.check, len(broken.path), found.states, seconds)
    return None


def all_mutations() -> Iterator[Mutation]:
    """The broken rules of ``search``, and those that only an exploration looks for."""
    yield from mutations.MUTATIONS
    for apply, check, first in migration_mutations.MUTATIONS:
        yield Mutation(apply, check, "consumer", first)
    yield from MORE


def seeds_of(mutation: Mutation) -> str:
    """How many seeds ``search`` plays until it finds a broken rule."""
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch)
        try:
            return str(first_seed(mutation) - mutation.first + 1)
        except AssertionError:
            return "none"


def main(names: list[str]) -> None:
    """Print the table."""
    print("| broken rule | world | found by | steps | states | s | seeds |")
    print("|---|---|---|---|---|---|---|")
    for mutation in all_mutations():
        if names and mutation.name not in names:
            continue
        found = hunt(mutation, worlds())
        if found is None:
            print(f"| {mutation.name.replace('_', ' ')} | none | | | | | |", flush=True)
            continue
        check = "no way to settle" if found.check == NO_WAY else found.check.replace("_", " ")
        print(
            f"| {found.mutation.replace('_', ' ')} | {found.world} | {check} | {found.depth} | {found.states:,} "
            f"| {found.seconds:.1f} | {seeds_of(mutation)} |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
