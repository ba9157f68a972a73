"""A simulation with the checks attached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.coordinator.core.effects import Effect
from rejoin.coordinator.core.inputs import Elected, Input
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.protocols import protocols_of
from rejoin.simulation.scenario.share_groups import share_groups
from rejoin.simulation.search import checks
from rejoin.simulation.search.observations import Observations, ObservedStep, Violation
from rejoin.simulation.search.observed_consumer_groups import ObservedConsumerGroups
from rejoin.simulation.search.observed_shares import ObservedShares
from rejoin.simulation.search.observed_transaction_log import ObservedTransactionLog
from rejoin.simulation.search.observed_transactions import ObservedTransactions
from rejoin.simulation.search.streaming.application import FreeApplication
from rejoin.simulation.search.streaming.observed import ObservedStreams
from rejoin.simulation.search.streaming.running import running_application
from rejoin.simulation.simulation import Simulation

LONGEST_FAULT_MS: Final[Millis] = 8_000
"""Longer than what any event has begun in a scenario that may end early."""


class CheckedSimulation(Watcher):
    """Checks every step of every node, and the whole simulation at intervals; raises :class:`Violation`.

    Without ``every_ms`` the whole is checked when ``check_now`` is called. ``scenario`` is given where the simulation
    plays it without its events, which may change a group's protocol.
    """

    def __init__(
        self,
        simulation: Simulation,
        every_ms: Millis | None = 1_000,
        application: FreeApplication | None = None,
        *,
        scenario: Scenario | None = None,
    ) -> None:
        self.simulation = simulation
        self.observed = Observations(simulation)
        if simulation.scenario.transactional_ids():
            self.observed.transactions = ObservedTransactions(simulation)
            self.observed.transaction_log = ObservedTransactionLog(simulation, self.observed.transactions)
        self.checks = checks.CLASSIC
        scenario = scenario or simulation.scenario
        if any("consumer" in protocols_of(scenario, each) for each in scenario.groups):
            self.observed.consumer_groups = ObservedConsumerGroups(simulation)
            self.checks = checks.MIGRATING
        if share_groups(simulation.scenario):
            self.observed.shares = ObservedShares(simulation)
            self.checks = checks.SHARED
        threads = application or running_application(simulation, scenario)
        if threads is not None:
            self.observed.streams = ObservedStreams(simulation, threads)
            self.checks = checks.STREAMED
        self._epoch_before = -1
        for node in simulation.cluster.nodes:
            node.watchers.append(self)
        simulation.world.listen(self._on_event)
        if every_ms is not None:
            simulation.world.control(every_ms, self._check_whole, every_ms)

    def run(self) -> None:
        """Play to the horizon; or until all that went into transforms has come out, long after the last fault."""
        simulation, transactions = self.simulation, self.observed.transactions
        simulation.begin()
        horizon = simulation.scenario.horizon
        if transactions is not None:
            faults = max((event.at for event in simulation.scenario.events), default=0)
            for until in range(faults + LONGEST_FAULT_MS, horizon, 2_000):
                simulation.world.run(until)
                if self.is_over():
                    return
        simulation.world.run(horizon)

    def before(self, node: NodeActor, what: Input) -> None:
        if isinstance(what, Elected) and isinstance(what.partition, TopicPartition) and node.core is not None:
            shard = node.core.shard(what.partition)
            self._epoch_before = -1 if shard is None else shard.epoch
        self.observed.before(node, what)

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        step = ObservedStep(node, what, effects, self.simulation.world.now, self._epoch_before)
        for check in self.checks.each_step:
            for problem in check(self.observed, step):
                raise Violation(check.__name__, step.now, problem)
        self.observed.after(step)

    def _on_event(self, _: Actor, event: Event, now: Millis) -> None:
        if isinstance(event, PartitionsAssigned) and event.partitions:
            for check in self.checks.on_assignment:
                for problem in check(self.observed, event):
                    raise Violation(check.__name__, now, problem)

    def _check_whole(self, every_ms: Millis) -> None:
        self.check_now()
        self.simulation.world.control(self.simulation.world.now + every_ms, self._check_whole, every_ms)

    def check_now(self) -> None:
        """Check what must hold at any time."""
        self._run_checks(self.checks.now_and_then)

    def check_all_logs(self) -> None:
        """Check what must hold of all records at any time. It reads every log, so only small worlds do it often."""
        self._run_checks(self.checks.of_all_logs)

    def at_the_end(self) -> None:
        """Check what must hold when the faults have been over for long enough."""
        self.check_now()
        self.check_all_logs()
        self._run_checks(self.checks.at_the_end)

    def is_over(self) -> bool:
        """Whether all that went in has come out, no transaction is open, and what must hold in the end holds now."""
        transactions, log = self.observed.transactions, self.observed.transaction_log
        are_open = (transactions is not None and not transactions.all_ended()) or (log is not None and log.is_open())
        return not are_open and self.holds_at_the_end()

    def holds_at_the_end(self) -> bool:
        """Whether what must hold in the end holds now."""
        return next(self._problems(self.checks.at_the_end), None) is None

    def _run_checks(self, all_checks: tuple[checks.WholeCheck, ...]) -> None:
        for violation in self._problems(all_checks):
            raise violation

    def _problems(self, all_checks: tuple[checks.WholeCheck, ...]) -> Iterator[Violation]:
        for check in all_checks:
            for problem in check(self.observed):
                yield Violation(check.__name__, self.simulation.world.now, problem)
