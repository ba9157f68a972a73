"""A lab with the checks attached."""

from __future__ import annotations

from rejoin.coordinator.core.effects import Effect
from rejoin.coordinator.core.inputs import Elected, Input
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import NodeActor, Watcher
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.lab import Lab
from rejoin.simulation.search import checks
from rejoin.simulation.search.observations import Observations, ObservedStep, Violation


class CheckedLab(Watcher):
    """Checks every step of every node, and the whole lab at intervals; raises :class:`Violation`."""

    def __init__(self, lab: Lab, every_ms: Millis = 1_000) -> None:
        self.lab = lab
        self.observed = Observations(lab)
        self.every_ms = every_ms
        self._epoch_before = -1
        for node in lab.cluster.nodes:
            node.watchers.append(self)
        lab.world.listen(self._on_event)
        lab.world.control(every_ms, self._check_whole)

    def before(self, node: NodeActor, what: Input) -> None:
        if isinstance(what, Elected) and isinstance(what.partition, TopicPartition) and node.core is not None:
            shard = node.core.shard(what.partition)
            self._epoch_before = -1 if shard is None else shard.epoch
        self.observed.before(node, what)

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        step = ObservedStep(node, what, effects, self.lab.world.now, self._epoch_before)
        for check in checks.EACH_STEP:
            for problem in check(self.observed, step):
                raise Violation(check.__name__, step.now, problem)
        self.observed.after(step)

    def _on_event(self, _: Actor, event: Event, now: Millis) -> None:
        if isinstance(event, PartitionsAssigned) and event.partitions:
            for check in checks.ON_ASSIGNMENT:
                for problem in check(self.observed, event):
                    raise Violation(check.__name__, now, problem)

    def _check_whole(self, _: object) -> None:
        self._run_checks(checks.NOW_AND_THEN)
        self.lab.world.control(self.lab.world.now + self.every_ms, self._check_whole)

    def at_the_end(self) -> None:
        """Check what must hold when the faults have been over for long enough."""
        self._run_checks(checks.NOW_AND_THEN)
        self._run_checks(checks.AT_THE_END)

    def _run_checks(self, all_checks: tuple[checks.WholeCheck, ...]) -> None:
        for check in all_checks:
            for problem in check(self.observed):
                raise Violation(check.__name__, self.lab.world.now, problem)
