"""Plays a scenario and gathers what there is to tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent, Range
from rejoin.journal.events.simulation import LabEvent, RecordsInHand, RunEnded
from rejoin.journal.writer import JournalWriter
from rejoin.simulation.lab import Lab
from rejoin.simulation.output.summary import Summary, SummaryCounter, summarise
from rejoin.simulation.output.timeline import Timeline
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.world import Actor, Listener, Millis

CONSUMERS = "consumers"
"""The stream of all consumers in a journal; each node has its own."""

OUTSIDE = "outside"
"""The stream of what the laboratory did: crashes of consumers, which no journal of a service can tell, and the rest."""


class RunJournal:
    """Writes the events of a run as a service and its consumers would: one stream for each node, one for the consumers,
    and one for what was done to them.

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

    def hear(self, party: Actor, event: Event, now: Millis) -> None:
        """Write an event down."""
        name = party.name
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
            self._file.write(stream.encode(self._rows[name], now, event).text + b"\n")

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
    tell: Callable[[str], None] | None = None,
    journal: Path | None = None,
    keep: bool = False,
    listeners: Iterable[Listener] = (),
    on_progress: Callable[[Millis], None] | None = None,
    run_id: str | None = None,
    prepare: Callable[[Lab], None] | None = None,
) -> tuple[Lab, Summary]:
    """Play a scenario to its horizon. ``tell`` is given each line of the timeline, ``keep`` remembers for a chart.

    ``run_id``: the journal's, else it is made of the seed. ``prepare`` is given the lab before anything happens.
    """
    counter = SummaryCounter()
    heard: list[Listener] = [counter.hear, *listeners]
    written: RunJournal | None = None
    with ExitStack() as closing:
        if journal is not None:
            used = scenario.seed if seed is None else seed
            written = closing.enter_context(RunJournal(journal, run_id or f"simulation-{used}"))
            heard.append(written.hear)
        story: Timeline | None = None
        if tell is not None:
            story = Timeline(tell, lambda: lab.ownership)
            heard.append(story.hear)
        lab = Lab(scenario, seed, skip=skip, keep=keep, listeners=heard)
        if story is None:
            # Nobody asks for them, and they would pile up.
            lab.world.listeners.append(lambda *_: lab.ownership.closed_gaps.clear())
        if prepare is not None:
            prepare(lab)
        lab.run(on_progress)
        if written is not None:
            for event in _end(lab):
                written.hear(lab.outside, event, lab.world.now)
        if story is not None:
            story.flush()
    return lab, summarise(lab, counter)


def _end(lab: Lab) -> Iterator[LabEvent]:
    """What is to be said of the last instant."""
    for consumer in lab.consumers.values():
        taken = [Range(topic=t, partition=p, start=start, end=end) for t, p, start, end in consumer.in_hand()]
        if taken:
            yield RecordsInHand(client_id=consumer.name, group_id=consumer.config.group_id or "", ranges=taken)
    yield RunEnded(seed=lab.seed)
