"""Plays random scenarios with random faults under the checks, and shrinks one that fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml
from pydantic import ValidationError

from rejoin.simulation.actors.misbehaving_client import MisbehavingClient
from rejoin.simulation.kernel import Millis
from rejoin.simulation.output.transcript import GroupTranscript
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.checked_simulation import CheckedSimulation
from rejoin.simulation.search.misbehaving_member import MisbehavingMember
from rejoin.simulation.search.observations import Violation
from rejoin.simulation.search.schedules import FAULTS_MS, SCHEDULES
from rejoin.simulation.search.streaming.application import FreeApplication
from rejoin.simulation.simulation import Simulation
from rejoin.transcript.player import TranscriptError, play
from rejoin.transcript.session import NodeFailed

SHRINK_TRIES: Final = 300
APPLICATION: Final = "application"
"""Key of the threads of Kafka Streams beside a scenario, which knows none."""

FIRST_SCHEDULE: Final = next(iter(SCHEDULES))


# --- playing


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """One seed, played to its end or to a violation."""

    violation: Violation | None
    steps: int
    virtual_ms: Millis
    transcript: str


def play_checked(data: dict[str, Any], *, transcript: bool = False) -> CheckedRun:
    """Play a scenario under the checks."""
    scenario = Scenario.model_validate({key: value for key, value in data.items() if key != APPLICATION})
    simulation = Simulation(scenario, skip=False)
    application = FreeApplication(simulation, data[APPLICATION]) if APPLICATION in data else None
    # The recorder comes first: it must have seen the step that breaks a rule.
    recorders = [GroupTranscript(simulation, group_id) for group_id in scenario.groups] if transcript else []
    checked = CheckedSimulation(simulation, application=application)
    if checked.observed.shares is not None:
        MisbehavingMember(simulation, 700, FAULTS_MS)
    elif application is None:
        MisbehavingClient(simulation, 7_000 if checked.observed.consumer_groups is None else 1_900, FAULTS_MS)
    violation: Violation | None = None
    try:
        checked.run()
        checked.at_the_end()
    except Violation as found:
        violation = found
    text = _concerned(recorders, violation).text(violation) if recorders else ""
    return CheckedRun(violation, simulation.world.steps, simulation.world.now, text)


def _concerned(recorders: list[GroupTranscript], violation: Violation | None) -> GroupTranscript:
    """The transcript of the group that a violation names, or whose members it names."""
    text = "" if violation is None else violation.text
    return next((each for each in recorders if re.search(rf"\b{each.group_id}\b", text)), recorders[0])


# --- failures


@dataclass(frozen=True, slots=True)
class FailingSeed:
    """A seed that fails, and the smallest scenario found that fails in the same way."""

    schedule: str
    seed: int
    violation: Violation
    data: dict[str, Any]
    transcript: str

    def scenario_text(self) -> str:
        """The scenario as YAML."""
        text: str = yaml.safe_dump(self.data, sort_keys=False, width=110)
        return text

    def report(self) -> str:
        """The violation, the command that shows it again, the scenario and the transcript."""
        schedule = "" if self.schedule == FIRST_SCHEDULE else f"--schedule {self.schedule} "
        return (
            f"seed {self.seed}, at {self.violation.at} ms: {self.violation}\n"
            f"again: rejoin search {schedule}--seeds {self.seed}\n\n"
            f"the smallest scenario that still fails:\n\n{self.scenario_text()}\n"
            f"as a transcript, which rejoin transcript play FILE plays:\n\n{self.transcript}"
        )


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The result of a search."""

    played: int
    steps: int
    virtual_ms: Millis
    faults: int
    failure: FailingSeed | None


def search_seeds(
    first: int,
    last: int,
    *,
    schedule: str = FIRST_SCHEDULE,
    minutes: float | None = None,
    shrink: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> SearchReport:
    """Play seeds until one fails, all are played, or the time is over."""
    began = time.monotonic()
    played = steps = faults = 0
    virtual_ms = 0
    for seed in range(first, last):
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            break
        data = SCHEDULES[schedule](seed)
        outcome = play_checked(data)
        played += 1
        steps += outcome.steps
        virtual_ms += outcome.virtual_ms
        faults += len(data["events"]) + len(data.get(APPLICATION, {}).get("moves", ()))
        if outcome.violation is not None:
            failure = explain(schedule, seed, data, outcome.violation, shrink=shrink)
            return SearchReport(played, steps, virtual_ms, faults, failure)
        if on_progress is not None:
            on_progress(played)
    return SearchReport(played, steps, virtual_ms, faults, None)


def explain(schedule: str, seed: int, data: dict[str, Any], violation: Violation, *, shrink: bool) -> FailingSeed:
    """Shrink a failing scenario and record its transcript."""
    if shrink:
        data, violation = shrunken(data, violation)
    outcome = play_checked(data, transcript=True)
    return FailingSeed(schedule, seed, outcome.violation or violation, data, _with_output(outcome.transcript))


def _with_output(transcript: str) -> str:
    """The transcript with what comes out today; without, if the coordinator breaks over it."""
    try:
        return play(transcript).text
    except (NodeFailed, TranscriptError):
        return transcript


def shrunken(data: dict[str, Any], violation: Violation) -> tuple[dict[str, Any], Violation]:
    """The smallest scenario found by leaving out one thing after the other that breaks the same check."""
    tries = 0
    smaller = True
    while smaller and tries < SHRINK_TRIES:
        smaller = False
        for candidate in _smaller(data, violation):
            tries += 1
            try:
                found = play_checked(candidate).violation
            except ValidationError:
                continue  # what was left out was needed by something that is still there
            if found is not None and found.check == violation.check:
                data, violation, smaller = candidate, found, True
                break
            if tries >= SHRINK_TRIES:
                break
    return data, violation


def _smaller(data: dict[str, Any], violation: Violation) -> Iterator[dict[str, Any]]:
    """Scenarios with one thing less."""
    horizon = int(data["horizon"].removesuffix("ms"))
    if violation.at + 1_000 < horizon:
        # Later events cannot matter.
        later = [event for event in data["events"] if int(str(event["at"]).removesuffix("ms")) <= violation.at]
        yield {**data, "events": later, "horizon": f"{violation.at + 1_000}ms"}
    for index in range(len(data["events"])):
        yield {**data, "events": data["events"][:index] + data["events"][index + 1 :]}
    for name, producers in data.get("producers", {}).items():
        for key, simplest in (("producers", 1), ("keys", 0), ("linger", "0ms"), ("max_in_flight", 1)):
            if producers[key] != simplest:
                yield {**data, "producers": {**data["producers"], name: {**producers, key: simplest}}}
    moves = data.get(APPLICATION, {}).get("moves", ())
    for index in range(len(moves)):
        yield {**data, APPLICATION: {**data[APPLICATION], "moves": [*moves[:index], *moves[index + 1 :]]}}
    used = str(data["events"])
    for group_id, group in data["groups"].items():
        others = {name: each for name, each in data["groups"].items() if name != group_id}
        if others and f"'{group_id}'" not in used and f"{group_id}-" not in used and f"of-{group_id}" not in used:
            yield {**data, "groups": others}
        size = group["consumers"]
        if size > 1 and f"{group_id}-{size}'" not in used:
            yield {**data, "groups": {**data["groups"], group_id: {**group, "consumers": size - 1}}}
        for key, plain in (
            ("commit", "after"),
            ("static", False),
            ("assignor", "range"),
            ("revoke", 0),
            ("assign", 0),
            ("processing", "1ms"),
            ("start", {"every": 0}),
            ("topics", ["t"]),
        ):
            if group.get(key, plain) != plain:
                yield {**data, "groups": {**data["groups"], group_id: {**group, key: plain}}}
        transform = group.get("transform", {})
        for key, least in (("records", 0), ("aborts", 0), ("keys", 0), ("linger", "0ms"), ("max_block", "60s")):
            if transform.get(key, least) != least:
                simpler = {**group, "transform": {**transform, key: least}}
                yield {**data, "groups": {**data["groups"], group_id: simpler}}
    if data["coordinator"]["nodes"] > 1 and "node-2" not in used:
        yield {**data, "coordinator": {**data["coordinator"], "nodes": 1}}
    for part, key, plain in (("coordinator", "log_latency", "exp(2ms)"), ("network", "latency", "exp(2ms)")):
        if data[part][key] != plain:
            yield {**data, part: {**data[part], key: plain}}
    topic = data["topics"]["t"]
    if topic["records_per_second"]:
        yield {**data, "topics": {**data["topics"], "t": {**topic, "records_per_second": 0}}}
    if topic["partitions"] > 1:
        yield {**data, "topics": {**data["topics"], "t": {**topic, "partitions": topic["partitions"] - 1}}}
