"""The instances of an application that a scenario runs, as the checks of streams groups look at threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.journal.events.base import Event
from rejoin.journal.events.streams_members import StreamsTasksAssigned
from rejoin.simulation.actors.streams.thread import StreamsThread
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.streams.groups import STREAMS, applications
from rejoin.simulation.search.streaming.thread import Task, flat
from rejoin.simulation.simulation import Simulation


class RunningThread(NamedTuple):
    """One thread in one instant."""

    name: str
    member_id: str
    process_id: str
    is_up: bool
    active: frozenset[Task]
    standby: frozenset[Task]
    is_honest: bool = True
    refusals: tuple[str, ...] = ()


class RunningApplication:
    """The threads of a group, which do what stream threads do."""

    def __init__(self, simulation: Simulation, group_id: str) -> None:
        self.simulation = simulation
        self.group_id = group_id
        self._parts = simulation.applications[group_id].code.subtopologies
        self.stateful = frozenset(each.subtopology_id for each in self._parts if each.stores)
        """The ids of subtopologies whose tasks may have standbys."""

    @property
    def threads(self) -> list[RunningThread]:
        """All threads as they are now."""
        return list(map(_as_it_is, self._threads()))

    def _threads(self) -> Iterator[StreamsThread]:
        for process in self.simulation.consumers.values():
            if isinstance(process, StreamsThread) and process.config.group_id == self.group_id:
                yield from process.instance.threads

    def tasks(self) -> frozenset[Task]:
        """All tasks. Internal topics that are not there yet have none."""
        topics = self.simulation.cluster.topics
        return frozenset(
            (part.subtopology_id, index)
            for part in self._parts
            for topic in part.topics
            for index in range(len(topics[topic].partitions) if topic in topics else 0)
        )

    def topic_made(self, name: str, partitions: int) -> None:
        """The cluster lets all nodes know the topics that one has made."""

    def when_taken(self, call: Callable[[str, str, frozenset[Task]], None]) -> None:
        """Call this with the name and the member id of a thread, and the active tasks that it runs from now on."""

        def on_event(actor: Actor, event: Event, _: Millis) -> None:
            if isinstance(event, StreamsTasksAssigned) and event.group_id == self.group_id:
                call(actor.name, event.member_id, flat(event.active))

        self.simulation.world.listen(on_event, [StreamsTasksAssigned])


def _as_it_is(thread: StreamsThread) -> RunningThread:
    core = thread.core
    return RunningThread(
        thread.name,
        "" if core is None else core.describe().member_id,
        thread.instance.process_id,
        core is not None and not thread.stopping,
        _tasks(thread.tasks.active()),
        _tasks(thread.tasks.standby()),
    )


def _tasks(tasks: list[TaskId]) -> frozenset[Task]:
    return frozenset((each.subtopology, each.partition) for each in tasks)


def running_application(simulation: Simulation, scenario: Scenario) -> RunningApplication | None:
    """The application of a scenario whose tasks the coordinator assigns, if there is one."""
    found = [group_id for group_id, group in applications(scenario).items() if group.protocol == STREAMS]
    return RunningApplication(simulation, found[0]) if found else None
