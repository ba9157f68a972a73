"""How much of the truth the pipeline gets back from brokers' logs, by Kafka version.

    python -m benchmarks recovered_from_logs

Simulated runs (the gallery, and random scenarios with faults) know what really happened. Each node's events are written
down as a broker of that version logs them, the log is read as if it were a real one, and what the pipeline makes of it
is compared with the truth: rebalances with their causes and instants, members, leaders. No times of this machine are
measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from rejoin.coordinator.control.broker_log_writer.request_log import RequestLog
from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Input, Received
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event as CoreEvent
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.reconstruction import reconstruct_group
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.reading.request_log import LoggedExchange
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import read_scenario
from rejoin.simulation.search.schedules import random_scenario
from rejoin.simulation.simulation import Simulation
from rejoin.transcript.steps import Step

SEEDS: Final = 30
VERSIONS: Final = ((2, 0), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (3, 0), (3, 2), (3, 9), (4, 0))
GALLERY: Final = Path(__file__).parent.parent / "simulation" / "gallery"
OFFSETS_PARTITIONS: Final = 50
CLOSE_MS: Final = 50
"""A completion is found in time when it is this close: logs have the assignment's arrival, not its storing."""

NEAR_MS: Final = 10_000
"""A beginning is found when it is reported this close to where it was; of logs that have it, all are exact."""

BASE_MS: Final = 1_700_000_000_000
"""Simulated clocks begin at nought; logs are of some day."""


_OF_COORDINATORS: Final = (
    events.GroupEvent,
    events.PartitionElected,
    events.PartitionLoaded,
    events.PartitionResigned,
)


class EmittedEvent(NamedTuple):
    """A coordinator's event of a simulated run."""

    node: int
    event: CoreEvent
    at_ms: Millis


class Run(NamedTuple):
    """The coordinators' events of a run, in order, and the request log of each node."""

    name: str
    emitted: list[EmittedEvent]
    requests: dict[int, list[bytes]]


class _Recorder(Watcher):
    """Keeps what a request log is made from."""

    def __init__(self) -> None:
        self.steps: dict[int, list[Step]] = {}
        self.nodes: dict[int, NodeActor] = {}

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        if isinstance(what, Received) or any(isinstance(effect, Reply) for effect in effects):
            number = int(node.name.rpartition("-")[2])
            self.nodes[number] = node
            steps = self.steps.setdefault(number, [])
            steps.append(Step(len(steps) + 1, BASE_MS + node.world.now, what, list(effects)))


def run(name: str, scenario: Scenario, seed: int | None = None, *, requests: bool = True) -> Run:
    """Play a scenario."""
    emitted: list[EmittedEvent] = []

    def on_event(actor: Actor, event: CoreEvent, now: Millis) -> None:
        if isinstance(event, _OF_COORDINATORS):
            emitted.append(EmittedEvent(int(actor.name.rpartition("-")[2]), event, BASE_MS + now))

    simulation = Simulation(scenario, seed, listeners=[on_event])
    # They are not needed, and they would pile up.
    simulation.world.listen(lambda *_: simulation.ownership.closed_gaps.clear(), [PartitionsAssigned])
    recorder = _Recorder()
    for node in simulation.cluster.nodes if requests else ():
        node.watchers.append(recorder)
    simulation.run()
    logs = {
        number: [line.encode() for line in RequestLog((3, 9), recorder.nodes[number].broker).lines(steps, 0, None)]
        for number, steps in recorder.steps.items()
    }
    return Run(name, emitted, logs)


def written(emitted: Iterable[EmittedEvent], version: tuple[int, int]) -> dict[int, list[bytes]]:
    """The log of each node, as brokers of a version write it."""
    logs: dict[int, BrokerLog] = {}
    lines: dict[int, list[bytes]] = {}
    for node, event, at_ms in emitted:
        log = logs.get(node)
        if log is None:
            log = logs[node] = BrokerLog(version, node, OFFSETS_PARTITIONS)
        lines.setdefault(node, []).extend(line.encode() for line in log.lines(event, at_ms))
    return lines


def read(logs: dict[int, list[bytes]], requests: dict[int, list[bytes]]) -> tuple[list[EventRow], int]:
    """What the pipeline makes of server logs and request logs, and how many lines it could not read."""
    statements: dict[str, list[Statement]] = {}
    asked: dict[str, list[SourcedExchange]] = {}
    broken = 0
    for node, lines in (*logs.items(), *requests.items()):
        name = f"broker-{node}.log"
        for found in LogFile(name, str(node)).statements(lines):
            if isinstance(found, BrokenLine):
                broken += 1
            elif isinstance(found, LoggedExchange):
                if found.group_id is not None:
                    asked.setdefault(found.group_id, []).append(SourcedExchange(found, str(node), name))
            elif found.group is not None:
                statements.setdefault(found.group, []).append(found)
    events: list[EventRow] = []
    for group in {**statements, **asked}:
        mine = sorted(statements.get(group, ()), key=lambda each: (each.order_ms, each.node, each.line))
        events += complete(list(reconstruct_group(group, mine)), asked.get(group, []))
    return events, broken


@dataclass(slots=True)
class Share:
    """How many of how many."""

    found: int = 0
    of: int = 0

    def count(self, right: bool) -> None:
        self.found += right
        self.of += 1

    @property
    def value(self) -> float:
        return self.found / self.of if self.of else 1.0

    def __str__(self) -> str:
        return f"{100 * self.value:.1f}" if self.of else "-"


ROWS: Final = (
    ("rebalances", "rebalances found"),
    ("cause", "  cause class"),
    ("member", "  member that caused it"),
    ("instance", "  its group.instance.id"),
    ("reason", "  client's reason (of those given)"),
    ("previous", "  state before"),
    ("join_end", "  end of the join phase"),
    ("completed", "completions found"),
    ("in_time", f"  within {CLOSE_MS} ms"),
    ("length", "  length, within as much"),
    ("first_cause", "  cause of the whole episode"),
    ("members", "  members after"),
    ("before", "  members before"),
    ("leader", "  leader"),
    ("owned", "  who owns what after"),
    ("removed", "members removed, with cause"),
    ("joined", "members that joined"),
    ("not_invented", "rebalances reported that were none"),
)
"""What is counted, and its line in the table."""


@dataclass(slots=True)
class Score:
    """Of one version, over all runs."""

    shares: dict[str, Share] = field(default_factory=lambda: {name: Share() for name, _ in ROWS})
    broken: int = 0
    missed: list[tuple[str, Any, Any]] = field(default_factory=list)
    """Some of what was not found: what, the truth, what was found."""

    def count(self, what: str, truth: object, found: object) -> None:
        right = truth == found
        self.shares[what].count(right)
        if not right and len(self.missed) < 20_000:
            self.missed.append((what, truth, found))

    def compare(self, emitted: list[EmittedEvent], found: list[EventRow]) -> None:
        """Hold what was found in the logs of one run against its truth."""
        by_place = Finder(found)
        for _, event, at in emitted:
            match event:
                case events.RebalanceStarted():
                    self._started(event, at, by_place)
                case events.JoinPhaseEnded():
                    recovered = by_place.take("join_phase_ended", event.group_id, at, event.generation)
                    self.count("join_end", (at, event.generation, event.join_ms), _ended(recovered))
                case events.RebalanceCompleted():
                    self._completed(event, at, by_place)
                case events.MemberRemoved():
                    recovered = by_place.take("member_removed", event.group_id, at, event.member_id)
                    self.count("removed", event.cause, recovered and recovered.get("cause"))
                case events.MemberJoined():
                    recovered = by_place.member("member_joined", event.group_id, event.member_id)
                    self.count("joined", event.member_id, recovered and recovered["member_id"])
                case _:
                    pass
        for recovered in by_place.rest("rebalance_started"):
            self.count("not_invented", None, (recovered.get("group_id"), recovered["at_ms"], recovered.get("cause")))
        for recovered in by_place.taken("rebalance_started"):
            self.count("not_invented", recovered, recovered)

    def _started(self, event: events.RebalanceStarted, at: Millis, found: Finder) -> None:
        recovered = found.take("rebalance_started", event.group_id, at, event.generation)
        self.count("rebalances", True, recovered is not None)
        recovered, cause = recovered or {}, event.cause
        self.count("cause", cause.cause, recovered.get("cause"))
        if cause.member_id:
            self.count("member", cause.member_id, recovered.get("cause_member_id"))
        if cause.group_instance_id:
            self.count("instance", cause.group_instance_id, recovered.get("cause_group_instance_id"))
        if cause.client_reason:
            self.count("reason", cause.client_reason, recovered.get("client_reason"))
        self.count("previous", event.previous_state, recovered.get("previous_state"))

    def _completed(self, event: events.RebalanceCompleted, at: Millis, found: Finder) -> None:
        recovered = found.take("rebalance_completed", event.group_id, None, event.generation)
        self.count("completed", True, recovered is not None)
        recovered = recovered or {}
        self.count("in_time", True, abs(recovered.get("at_ms", 0) - at) <= CLOSE_MS)
        self.count("length", True, abs(recovered.get("rebalance_ms", -CLOSE_MS - 1) - event.rebalance_ms) <= CLOSE_MS)
        self.count("first_cause", event.cause.cause, recovered.get("cause"))
        self.count("members", sorted(event.members_after), sorted(recovered.get("members") or ()))
        self.count("before", sorted(event.members_before), sorted(recovered.get("members_before", ["?"])))
        self.count("leader", event.leader, recovered.get("leader"))
        owned = recovered.get("owned_after")
        self.count(
            "owned",
            _owned(event.owned_after),
            owned and sorted(owned, key=lambda owned_partition: tuple(owned_partition.values())),
        )


def _ended(event: EventRow | None) -> object:
    return event and (event["at_ms"], event["generation"], event.get("join_ms"))


def _owned(ownership: events.Ownership) -> object:
    return [
        {"member_id": member, "topic": topic, "partition": partition}
        for member, topics in sorted(ownership.items())
        for topic, partitions in sorted(topics.items())
        for partition in partitions
    ]


class Finder:
    """Events by their keys; each is found once."""

    def __init__(self, found: list[EventRow]) -> None:
        self._events: dict[tuple[Any, ...], list[EventRow]] = {}
        self._taken: dict[str, list[EventRow]] = {}
        self._members: dict[tuple[Any, ...], EventRow] = {}
        for event in found:
            name, group = event["event"], event.get("group_id")
            member = event.get("member_id")
            what = member if member is not None else event.get("generation")
            at = None if name == "rebalance_completed" else event["at_ms"]
            self._events.setdefault((name, group, at, what), []).append(event)
            self._members.setdefault((name, group, member), event)

    def take(self, name: str, group: str, at: Millis | None, what: object) -> EventRow | None:
        events_ = self._events.get((name, group, at, what))
        event = events_.pop(0) if events_ else self._near(name, group, at, what)
        if event is None:
            return None
        self._taken.setdefault(name, []).append(event)
        return event

    def _near(self, name: str, group: str, at: Millis | None, what: object) -> EventRow | None:
        """What is reported a little off: requests show the effects of a beginning, not the beginning itself."""
        near = [
            (abs(key[2] - at), index, left)
            for index, (key, left) in enumerate(self._events.items())
            if left and at is not None and key[2] is not None and (key[0], key[1], key[3]) == (name, group, what)
        ]
        distance, _, left = min(near, default=(NEAR_MS + 1, 0, []))
        return left.pop(0) if distance <= NEAR_MS else None

    def member(self, name: str, group: str, member: str) -> EventRow | None:
        """An event about a member, whenever."""
        return self._members.get((name, group, member))

    def rest(self, name: str) -> Iterator[EventRow]:
        """Those that nothing of the truth asked for."""
        for key, left in self._events.items():
            if key[0] == name:
                yield from left

    def taken(self, name: str) -> list[EventRow]:
        return self._taken.get(name, [])


def runs(seeds: Iterable[int], gallery: bool = True) -> Iterator[Run]:
    """Play the gallery and random scenarios."""
    if gallery:
        for path in sorted(GALLERY.glob("*.yaml")):
            yield run(path.stem, read_scenario(path))
    for seed in seeds:
        yield run(f"seed {seed}", Scenario.model_validate(random_scenario(seed)))


class Source(NamedTuple):
    """What is read: the log of a version or none, the request log or not."""

    version: tuple[int, int] | None
    requests: bool = False

    def __str__(self) -> str:
        version = ".".join(map(str, self.version)) if self.version is not None else ""
        return f"{version}+r" if version and self.requests else version or "req"


SOURCES: Final = (
    *(Source(version) for version in VERSIONS),
    Source((2, 8), True),
    Source((4, 0), True),
    Source(None, True),
)
"""The columns of the table."""


def score(all_runs: Iterable[Run], sources: Iterable[Source] = SOURCES) -> dict[Source, Score]:
    """Write, read and compare every run as every source has it."""
    scores = {source: Score() for source in sources}
    for each in all_runs:
        for source, result in scores.items():
            logs = written(each.emitted, source.version) if source.version is not None else {}
            found, broken = read(logs, each.requests if source.requests else {})
            result.broken += broken
            result.compare(each.emitted, found)
    return scores


def table(scores: dict[Source, Score]) -> list[str]:
    """The shares in per cent, one column a version."""
    width = max(len(title) for _, title in ROWS) + 2
    head = "".join(f"{source!s:>7}" for source in scores)
    lines = [f"{'of 100 there were, found':<{width}}{head}"]
    for name, title in ROWS:
        shown = "".join(f"{_cell(name, result.shares[name]):>7}" for result in scores.values())
        lines.append(f"{title:<{width}}{shown}")
    lines.append(f"{'lines that could not be read':<{width}}" + "".join(f"{r.broken:>7}" for r in scores.values()))
    return lines


def _cell(name: str, share: Share) -> str:
    return str(share.of - share.found) if name == "not_invented" else str(share)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random scenarios besides the gallery")
    parser.add_argument("--show", metavar="COLUMN:WHAT", help="print what was not found, such as 3.9:cause")
    options = parser.parse_args(arguments or [])
    all_runs = list(runs(range(options.seeds)))
    scores = score(all_runs)
    first = next(iter(scores.values()))
    print(
        f"{len(all_runs)} runs (the gallery and {options.seeds} random ones), {first.shares['rebalances'].of} "
        f"rebalances, {first.shares['completed'].of} completed"
    )
    print("\n".join(table(scores)))
    for source, result in scores.items():
        for name, truth, found in result.missed if options.show else ():
            if f"{source}:{name}" == options.show:
                print(f"  {truth}  <>  {found}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
