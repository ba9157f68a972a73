"""What a run is written down as, and the run itself, are the same events at the same instants."""

from __future__ import annotations

from typing import TypeGuard

import pytest

from rejoin.coordinator.core.effects import Effect
from rejoin.coordinator.core.inputs import Input
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupEvent
from rejoin.journal.formatting import format_event
from rejoin.simulation.actors.misbehaving_client import MisbehavingClient
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Millis
from rejoin.simulation.output.transcript import GroupTranscript
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.schedules import FAULTS_MS, random_scenario
from rejoin.simulation.simulation import Simulation
from rejoin.transcript.document import read_blocks
from rejoin.transcript.driver import START
from rejoin.transcript.interpreter import TranscriptPlayer
from tests.simulation.unfinished import run_to_horizon

Lines = list[tuple[Millis, str]]


class Events(Watcher):
    """The events of a transcript's group, as its leaders emitted them, with the member ids of the transcript."""

    def __init__(self, simulation: Simulation, transcript: GroupTranscript) -> None:
        self.simulation = simulation
        self.transcript = transcript
        self.emitted: Lines = []
        for node in simulation.cluster.nodes:
            node.watchers.append(self)

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        for effect in effects:
            if self.transcript.leads(node) and is_about(effect, self.transcript.group_id):
                self.emitted.append((self.simulation.world.now, self.transcript.pretty(format_event(effect))))


class Listening(TranscriptPlayer):
    """A player that keeps the events of its group."""

    def __init__(self) -> None:
        super().__init__()
        self.emitted: Lines = []

    def on_event(self, event: Event) -> None:
        if is_about(event, self.group):
            self.emitted.append((self.now - START, format_event(event)))
        super().on_event(event)


def is_about(effect: Effect, group_id: str) -> TypeGuard[GroupEvent]:
    """Whether this is an event of a group; that it is given up by one node is not one that every run has."""
    return isinstance(effect, GroupEvent) and effect.group_id == group_id and "-> Dead" not in format_event(effect)


def played(seed: int) -> tuple[str, Lines]:
    """A random scenario, as a transcript and as events."""
    simulation = Simulation(Scenario.model_validate(random_scenario(seed)), skip=False)
    transcript = GroupTranscript(simulation, "app")
    events = Events(simulation, transcript)
    MisbehavingClient(simulation, 7_000, FAULTS_MS)
    run_to_horizon(simulation)
    return transcript.text(None), events.emitted


@pytest.mark.parametrize("start", range(0, 20, 10))
def test_a_transcript_replays_the_run_it_was_made_of(start: int) -> None:
    many = 0
    for seed in range(start, start + 10):
        text, events = played(seed)
        player = Listening()
        player.play([line.text for block in read_blocks(text) for line in block.commands])
        for ours, theirs in zip(player.emitted, events, strict=False):
            assert ours == theirs, f"seed {seed}"
        assert len(player.emitted) == len(events), f"seed {seed}"
        many += len(events)
    assert many > 500
