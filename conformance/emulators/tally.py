"""Counts how many scripts an emulator passes; and this one, without a socket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.replay.replay import Emulator, Recording, is_served, read
from rejoin.conform.comparison.compare import Difference, differences

SET: Final = "plain"
_GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden" / "kafka-4.x"

ITS_OWN: Final = frozenset(
    {"errorMessage", "clusterId", "configs", "apiKeys", "supportedFeatures", "finalizedFeatures"}
    | {"finalizedFeaturesEpoch", "port", "host", "nodeId", "leaderId", "controllerId", "replicaNodes", "isrNodes"}
    | {"topicId", "clientHost", "authorizedOperations", "topicAuthorizedOperations", "leaderEpoch"}
)
"""Fields that another cluster may well have otherwise."""


@dataclass
class Tally:
    """Counts of scripts by their outcome."""

    played: int = 0
    not_spoken: int = 0
    same_errors: int = 0
    same: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def count_unplayed(self, name: str, problem: str, *, spoken: bool) -> None:
        """One script that could not be played to its end."""
        self.played += 1
        self.not_spoken += not spoken
        self.failed[name] = problem

    def count(self, name: str, found: Iterable[Difference]) -> None:
        """One script that was played, with its differences."""
        self.played += 1
        relevant = [one for one in found if one.path.rsplit(".", 1)[-1] not in ITS_OWN]
        wrong = [one for one in relevant if one.path.endswith("errorCode") or not one.path]
        self.same_errors += not wrong
        self.same += not relevant
        if relevant:
            self.failed[name] = str((wrong or relevant)[0])


def recorded() -> dict[str, Recording]:
    """The recordings of the set, by subject and name."""
    paths = sorted((_GOLDEN / SET).glob("*/*.jsonl"))
    return {f"{path.parent.name}/{path.stem}": read(path) for path in paths}


def play_here() -> Tally:
    """Tally of this emulator's core."""
    tally = Tally()
    for name, recording in recorded().items():
        answers = Emulator(recording).play()
        found = [
            one
            for asked in recording.exchanges
            if is_served(asked)
            for one in differences(asked, answers.get(asked.number))
        ]
        tally.count(name, found)
    return tally
