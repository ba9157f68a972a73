"""Groups among random joins, closings and failovers: never two owners of a partition, and in the end one of each."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rejoin.client.core.inputs import RebalanceEnforced
from tests.client.simulated_group import SimulatedGroup, covered

PARTITIONS = 12


class Chaos:
    """A group and a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.group = SimulatedGroup(topics={"t": PARTITIONS}, records_per_second=5)
        self.assignor = self.random.choice(["range", "cooperative-sticky", "sticky"])
        self.static = self.random.random() < 0.3
        self.count = 0

    def living(self) -> list[str]:
        return list(self.group.running())

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.disturb()
            for _ in range(self.random.choice([1, 5, 40])):
                self.group.run(self.random.choice([1, 50, 300]))
                self.check()

    def disturb(self) -> None:
        living = self.living()
        match self.random.randrange(7):
            case 0 | 1 | 2:
                self.join()
            case 3 if len(living) > 1:
                self.group.close(self.random.choice(living))
            case 4 if living:
                self.group.step(self.random.choice(living), RebalanceEnforced())
            case 5:
                self.group.fail_over(self.random.choice([0, 200, 3_000]))

    def join(self) -> None:
        self.count += 1
        settings: dict[str, Any] = {"group_instance_id": f"i{self.count}"} if self.static else {}
        self.group.consumer(
            f"c{self.count}",
            assignors=(self.assignor,),
            session_timeout_ms=10_000,
            max_poll_interval_ms=30_000,
            **settings,
        )

    def check(self) -> None:
        owners: dict[int, str] = {}
        for name in self.living():
            for partition in self.group.members[name].owned():
                assert partition not in owners, f"t-{partition} has two owners: {owners[partition]} and {name}"
                owners[partition] = name


@pytest.mark.parametrize("seed", range(25))
def test_a_group_survives_chaos(seed: int) -> None:
    chaos = Chaos(seed)
    chaos.join()
    chaos.play(14)
    chaos.group.run(60_000)
    chaos.check()
    assert covered(chaos.group.assignments(), PARTITIONS), chaos.group.assignments()
    assert chaos.group.failures() == {}
