"""Plays a scenario, writes its journal and timeline, and sums it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent, PartitionsAssigned, Range
from rejoin.journal.events.simulation import LabEvent, RecordsCompared, RecordsInHand, RunEnded
from rejoin.journal.timeline_lines import TIMELINE_EVENTS
from rejoin.journal.writer import JournalWriter
from rejoin.simulation.explore.following import FollowingWorld
from rejoin.simulation.kernel import Actor, Listener, Millis, SelectiveListener
from rejoin.simulation.output.summary import COUNTED_EVENTS, Summary, SummaryCounter, summarise
from rejoin.simulation.output.timeline import Timeline
from rejoin.simulation.output.transformed_records import ReaderSummary, summarise_reader, transforms_read_by
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.writers import ReaderSpec
from rejoin.simulation.simulation import Simulation

CONSUMERS = "consumers"
"""The stream of all consumers in a journal; each node has its own."""

OUTSIDE = "outside"
"""The stream of what was done from outside, such as crashes of consumers, which no service can know."""


class RunJournal:
    """Writes the events of a run as a service and its consumers do: one stream for each node, one for the consumers,
    and one for the actions from outside.

    A path that ends in ``.jsonl`` becomes one file with the rows of all streams; any other becomes a directory of
    segments as :mod:`rejoin.journal.segments` has them.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._streams: dict[str, JournalWriter | RowEncoder] = {}
        self._rows: dict[str, int] = {}
        self._file: BinaryIO | None = None
        if path.suffix == ".jsonl":
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")

    def on_event(self, actor: Actor, event: Event, now: Millis) -> None:
        """Take an event."""
        name = actor.name
        if isinstance(event, LabEvent):
            name = OUTSIDE
        elif isinstance(event, ConsumerEvent):
            name = CONSUMERS
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = self._open(name)
        if isinstance(stream, JournalWriter):
            stream.append(event, now)
            if stream.unflushed_bytes > 1 << 20:
                stream.flush()
        elif self._file is not None:
            self._rows[name] = self._rows.get(name, 0) + 1
            self._file.write(stream.encode(self._rows[name], now, event) + b"\n")

    def _open(self, name: str) -> JournalWriter | RowEncoder:
        if self._file is not None:
            return RowEncoder(self._run_id, "simulation", name)
        return JournalWriter(self._path, self._run_id, "simulation", name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        for stream in self._streams.values():
            if isinstance(stream, JournalWriter):
                stream.close()


def play(
    scenario: Scenario,
    seed: int | None = None,
    *,
    skip: bool = True,
    print_line: Callable[[str], None] | None = None,
    journal: Path | None = None,
    keep: bool = False,
    listeners: Iterable[Listener | SelectiveListener] = (),
    on_progress: Callable[[Millis], None] | None = None,
    run_id: str | None = None,
    prepare: Callable[[Simulation], None] | None = None,
) -> tuple[Simulation, Summary]:
    """Play a scenario to its horizon. ``print_line`` gets each line of the timeline.

    ``keep``: remember who owned what, for a chart. ``run_id``: the journal's; otherwise it is made of the seed.
    ``prepare`` gets the simulation before the run begins.
    """
    counter = SummaryCounter()
    all_listeners: list[Listener | SelectiveListener] = [
        SelectiveListener(counter.on_event, COUNTED_EVENTS),
        *listeners,
    ]
    written: RunJournal | None = None
    with ExitStack() as closing:
        if journal is not None:
            used = scenario.seed if seed is None else seed
            written = closing.enter_context(RunJournal(journal, run_id or f"simulation-{used}"))
            all_listeners.append(written.on_event)
        timeline: Timeline | None = None
        if print_line is not None:
            timeline = Timeline(print_line, lambda: simulation.ownership)
            all_listeners.append(SelectiveListener(timeline.on_event, TIMELINE_EVENTS))
        simulation = Simulation(scenario, seed, skip=skip, keep=keep, listeners=all_listeners)
        if timeline is None:
            # They would pile up, because only a timeline takes them.
            simulation.world.listen(lambda *_: simulation.ownership.closed_gaps.clear(), [PartitionsAssigned])
        if prepare is not None:
            prepare(simulation)
        simulation.run(on_progress)
        if written is not None:
            for event in _end(simulation):
                written.on_event(simulation.operator, event, simulation.world.now)
        if timeline is not None:
            timeline.flush()
    return simulation, summarise(simulation, counter)


def _end(simulation: Simulation) -> Iterator[LabEvent]:
    """The events of the last instant."""
    for consumer in simulation.consumers.values():
        taken = [Range(topic=t, partition=p, start=start, end=end) for t, p, start, end in consumer.in_hand()]
        if taken:
            yield RecordsInHand(client_id=consumer.name, group_id=consumer.config.group_id or "", ranges=taken)
    for name, reader in simulation.readers.items():
        yield _compared(simulation, summarise_reader(simulation, reader), simulation.scenario.readers[name])
    yield RunEnded(seed=simulation.seed)


def _compared(simulation: Simulation, found: ReaderSummary, reader: ReaderSpec) -> RecordsCompared:
    """The counts of a reader as an event."""
    groups = transforms_read_by(reader, simulation.scenario)
    return RecordsCompared(
        reader=found.name,
        isolation_level=found.isolation,
        topics=list(reader.topics),
        transform_groups=list(groups),
        commit_modes=[group.commit for group in groups.values()],
        records_in=found.went_in,
        records_read=found.read,
        records_twice=found.twice,
        records_lost=found.lost,
        records_out_of_order=found.out_of_order,
        records_aborted=found.aborted,
        records_unread=found.unread,
        records_to_come=found.to_come,
    )


def check_path(scenario: Scenario) -> None:
    """Refuse a scenario whose path takes a choice that there is not. Raises ``NoSuchStep``."""
    if scenario.explore is None or scenario.explore.path is None:
        return
    simulation = Simulation(scenario)
    simulation.begin()
    assert isinstance(simulation.world, FollowingWorld), "a scenario with a path has such a kernel"
    simulation.world.follow_to_the_end()
