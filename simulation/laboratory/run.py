"""One run of a scenario that can be looked at: it plays in pieces, and knows the state of all cores in any instant.

It opens no file, socket or thread. The same scenario and seed give the same rows, and the same state in each instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.share_partitions import SharePartitionEvent
from rejoin.journal.events.simulation import ConsumerCrashed, ConsumerFailed, ConsumerStopped, ScenarioAction
from rejoin.journal.recording.recorder import Recorder
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.kernel import Actor, Millis, SelectiveListener
from rejoin.simulation.laboratory.group_log import GroupLog
from rejoin.simulation.laboratory.lag import COMMIT_EVENTS, SHARE_EVENTS, CommitHistory, ShareProgress
from rejoin.simulation.laboratory.node_history import NodeHistories
from rejoin.simulation.laboratory.process_history import ProcessHistory, ProcessView, view_of
from rejoin.simulation.laboratory.request_history import RequestHistory
from rejoin.simulation.laboratory.troubles import Troubles
from rejoin.simulation.output.streams_tasks import STREAMS_ROWS
from rejoin.simulation.output.summary import COUNTED_EVENTS, ROWS, Summary, SummaryCounter, summarise
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.simulation import Simulation

PIECES: Final = 120
"""A run is played in so many pieces of equal length."""

MOST_IN_FLIGHT: Final = 200
"""More requests in flight are not listed one by one."""


class ObservedSimulation(Simulation):
    """A simulation whose consumers report each step of their cores."""

    observer: LaboratoryRun | None = None

    def consumer(self, name: str, like: str | None = None) -> ConsumerProcess:
        """A consumer's process, observed from the start."""
        found = super().consumer(name, like)
        if self.observer is not None and found.on_step is None:
            self.observer.observe(found)
        return found


class LaboratoryRun:
    """A run. Every heartbeat is played, so that all timers are what they would be."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        self.scenario = scenario
        self.recorder = Recorder()
        self._counter = SummaryCounter()
        self.commits = CommitHistory()
        self.shared = ShareProgress()
        self.simulation = simulation = ObservedSimulation(
            scenario,
            seed,
            skip=False,
            listeners=[
                lambda actor, event, now: self.recorder.on_event(actor.name, event, now),
                SelectiveListener(self._counter.on_event, COUNTED_EVENTS),
                SelectiveListener(self.commits.on_event, COMMIT_EVENTS),
                SelectiveListener(self._on_share_event, SHARE_EVENTS),
                SelectiveListener(self._on_action, [ScenarioAction]),
                SelectiveListener(self._on_end, [ConsumerStopped, ConsumerCrashed, ConsumerFailed]),
            ],
        )
        simulation.observer = self
        self.processes: dict[str, ProcessHistory] = {}
        self.requests = simulation.network.observer = RequestHistory(simulation.world)
        self.nodes = NodeHistories(simulation.cluster.nodes)
        self.log = GroupLog(simulation)
        self.troubles = Troubles(simulation, self.recorder, self.nodes)
        self.summary: Summary | None = None
        """The numbers of the run, when it has been played to its end."""

    # -- playing

    def play(self) -> Iterator[dict[str, Any]]:
        """Play to the horizon, in pieces: the rows of each, and at the end the numbers of the run."""
        simulation, horizon = self.simulation, self.scenario.horizon
        for node in simulation.cluster.nodes:
            self.recorder.add("actors", node.name, "node", "")
        simulation.begin()
        self.troubles.look(None)
        step = max(1, -(-horizon // PIECES))
        for until in range(0, horizon + step, step):
            simulation.world.run(min(until, horizon))
            if until >= horizon:
                break
            yield self._piece()
        last = self._piece()
        simulation.finish()
        yield {**last, "done": True, "summary": self._summary()}

    def _piece(self) -> dict[str, Any]:
        rows = [row.values() for row in self.requests.take_changed()]
        return {"until": self.simulation.world.now, **self.recorder.take(), **({"requests": rows} if rows else {})}

    def _summary(self) -> dict[str, list[list[str]]]:
        summary = self.summary = summarise(self.simulation, self._counter)
        shown = {
            group_id: [[label.strip(), str(value(group))] for label, value in ROWS]
            for group_id, group in summary.groups.items()
        }
        for group_id, tasks in summary.applications.items():
            shown[group_id] += [[label.strip(), str(of_tasks(tasks))] for label, of_tasks in STREAMS_ROWS]
        return shown

    # -- observing

    def observe(self, consumer: ConsumerProcess) -> None:
        """Keep what becomes of a consumer's process from now on."""
        group_id = consumer.config.group_id or ""
        self.processes[consumer.name] = ProcessHistory(group_id)
        self.recorder.add("actors", consumer.name, "consumer", group_id)
        consumer.on_step = self._on_step

    def _on_step(self, consumer: ConsumerProcess) -> None:
        now, history = self.simulation.world.now, self.processes[consumer.name]
        view = view_of(consumer, history.at(now))
        member = view.member
        if history.take(view, now) and member is not None:
            self.recorder.add("members", now, consumer.name, member.state, member.generation)

    def _on_share_event(self, _: Actor, event: Event, now: Millis) -> None:
        assert isinstance(event, SharePartitionEvent)
        self.shared.on_event(event, now, self.simulation.shares)

    def _on_end(self, actor: Actor, _: object, now: Millis) -> None:
        self.processes[actor.name].take(ProcessView(None), now)
        self.troubles.ended(actor.name, now)

    def _on_action(self, _: Actor, __: object, now: Millis) -> None:
        # The action is emitted before it is carried out.
        self.simulation.world.control(now, self.troubles.look)
