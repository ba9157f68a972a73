"""Real Kafka clients live their whole life with the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from rejoin.coordinator.testing import GroupCoordinator, running_in_thread
from rejoin.journal.events.coordinator import CoreFailed
from tests.real_clients.client import Client
from tests.real_clients.libraries import LIBRARIES
from tests.real_clients.steps import STEPS

SETTINGS = {"group.initial.rebalance.delay.ms": 0}
EACH_STEP = [
    pytest.param(library, step, id=f"{library.name}-{step}", marks=pytest.mark.xdist_group(library.name))
    for library in LIBRARIES
    for step in STEPS
    if step not in library.without
]


@dataclass
class Life:
    """A client that does the steps in their order, each once."""

    client: Client
    coordinator: GroupCoordinator
    done: list[str] = field(default_factory=list)
    failed: str | None = None

    def reach(self, step: str) -> None:
        """Do a step, after those that come before it."""
        for name, do in STEPS.items():
            if name not in self.done and name not in self.client.without:
                assert self.failed is None, f"a step before this one failed: {self.failed}"
                self.failed = name
                do(self.client)
                self.failed = None
                self.done.append(name)
            if name == step:
                return


@pytest.fixture(scope="module")
def lives() -> Iterator[dict[type[Client], Life]]:
    """The lives that have begun, each with a coordinator of its own."""
    with ExitStack() as stack:
        yield LazyLives(stack)


class LazyLives(dict[type[Client], Life]):
    """Begins a life when it is first looked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __missing__(self, library: type[Client]) -> Life:
        self[library] = life = self._stack.enter_context(living(library))
        return life


@contextmanager
def living(library: type[Client]) -> Iterator[Life]:
    """A client, which at its end has sent nothing that was refused or broke the core."""
    with running_in_thread(settings=SETTINGS) as coordinator:
        client = library(coordinator.bootstrap_servers)
        try:
            yield Life(client, coordinator)
        finally:
            client.close()
        assert not coordinator.app.metrics.refused, "the server refused what the client sent"
        assert coordinator.app.control is not None
        effects = [effect for step in coordinator.app.control.recorder.since(0) for effect in step.effects]
        assert [effect for effect in effects if isinstance(effect, CoreFailed)] == []


@pytest.mark.parametrize(("library", "step"), EACH_STEP)
def test_a_client_does_each_step(lives: dict[type[Client], Life], library: type[Client], step: str) -> None:
    lives[library].reach(step)
