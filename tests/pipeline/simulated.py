"""Short random scenarios played by hundreds, their journals, and what the simulator itself counted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.schedules import random_scenario

T = TypeVar("T")

FEW = 100
"""Short scenarios that one process plays: two more would import for nearly as long. ``make table-seeds`` has more."""
HORIZON = "75s"
RARELY = 0.5


def short_scenario(seed: int) -> dict[str, Any]:
    """A random scenario that breaks off while some of its faults still have an effect."""
    data = random_scenario(seed)
    data["horizon"] = HORIZON
    for group in data["groups"].values():
        group["poll"] = "2s"
    for topic in data["topics"].values():
        topic["records_per_second"] = min(topic["records_per_second"], RARELY)
    data["events"] = [event for event in data["events"] if int(event["at"].removesuffix("ms")) < 60_000]
    return data


def play_one(folder: Path, seed: int) -> dict[str, Any]:
    """Play one and keep its journal; what the simulator counted comes back, by group."""
    data = short_scenario(seed)
    _, summary = play(Scenario.model_validate(data), journal=folder / f"{seed}.jsonl")
    kinds = sorted({kind for event in data["events"] for kind in event if kind != "at"})
    return {
        "run_id": f"simulation-{seed}",
        "kinds": kinds,
        "groups": {group_id: asdict(group) for group_id, group in summary.groups.items()},
    }


def play_many(folder: Path, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Play many, each with a journal in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return of_each(seeds, partial(play_one, folder), few=FEW)


def of_each(seeds: Sequence[int], played: Callable[[int], T], *, few: int) -> list[T]:
    """Results of all seeds in order: in this process, or in two others where there are more than a few."""
    if len(seeds) <= few:
        return [played(seed) for seed in seeds]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return list(pool.map(played, seeds, chunksize=max(1, min(10, len(seeds) // 8))))


def lines_of(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a journal."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]
