"""A run in numbers: rebalances by cause, partitions without an owner, stopped consumers, late and lost records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    CoreFailed,
    MemberFenced,
    MemberRemoved,
    RebalanceCompleted,
    RebalanceStarted,
    StaticMemberReplaced,
)
from rejoin.journal.timeline_lines import span
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.produced_records import PRODUCER_ROWS, ProducerSummary, logged_records, summarise_producer
from rejoin.simulation.output.share_records import SHARE_ROWS, ShareSummary, summarise_shares
from rejoin.simulation.output.streams_tasks import STREAMS_ROWS, StreamsSummary
from rejoin.simulation.output.transformed_records import (
    READER_ROWS,
    TRANSACTION_ROWS,
    ReaderSummary,
    TransactionSummary,
    summarise_reader,
    summarise_transactions,
)
from rejoin.simulation.scenario.model import GroupSpec
from rejoin.simulation.scenario.share_groups import share_groups
from rejoin.simulation.scenario.streams.groups import applications
from rejoin.simulation.scenario.writers import ReaderSpec
from rejoin.simulation.simulation import Simulation

Part = TypeVar("Part")

COUNTED_EVENTS: Final = (
    RebalanceStarted,
    RebalanceCompleted,
    MemberRemoved,
    StaticMemberReplaced,
    MemberFenced,
    CoreFailed,
)
"""The events that a summary counts."""


@dataclass(slots=True)
class GroupSummary:
    """One group. Lengths in ms; the causes are those of the coordinator's events."""

    group_id: str
    rebalances: dict[str, int] = field(default_factory=dict)
    """How often a rebalance began, by cause."""
    completed: int = 0
    longest_rebalance_ms: Millis = 0
    rebalancing_ms: Millis = 0
    moved: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    static_returns: int = 0
    fenced: int = 0
    unowned_ms: Millis = 0
    worst_unowned_ms: Millis = 0
    stopped_ms: Millis = 0
    first_owned_ms: Millis = 0
    processed: int = 0
    late: int = 0
    twice: int = 0
    lost: int = 0
    behind: int = 0
    out_twice: int = 0
    out_lost: int = 0
    """Copies that came out of its transform, and records that never will, as a reader of committed records counts
    them; without one, as any reader does."""

    @property
    def started(self) -> int:
        """Rebalances of every cause."""
        return sum(self.rebalances.values())


@dataclass(slots=True)
class Summary:
    """All groups of a run, and the run itself."""

    horizon_ms: Millis
    seed: int
    groups: dict[str, GroupSummary]
    core_failures: int = 0
    steps: int = 0
    producers: dict[str, ProducerSummary] = field(default_factory=dict)
    transactions: dict[str, TransactionSummary] = field(default_factory=dict)
    """By group, of those that commit in transactions."""
    readers: dict[str, ReaderSummary] = field(default_factory=dict)
    shares: dict[str, ShareSummary] = field(default_factory=dict)
    """By group, of share groups."""
    applications: dict[str, StreamsSummary] = field(default_factory=dict)
    """By group, of Kafka Streams applications."""


class SummaryCounter:
    """Counts the events of the coordinator."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupSummary] = {}
        self.core_failures = 0

    def group(self, group_id: str) -> GroupSummary:
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = GroupSummary(group_id)
        return found

    def on_event(self, _: Actor, event: Event, now: Millis) -> None:
        """Take an event."""
        match event:
            case RebalanceStarted():
                causes = self.group(event.group_id).rebalances
                causes[event.cause.cause] = causes.get(event.cause.cause, 0) + 1
            case RebalanceCompleted():
                group = self.group(event.group_id)
                group.first_owned_ms = group.first_owned_ms or now
                group.completed += 1
                group.moved += event.moved
                group.rebalancing_ms += event.rebalance_ms
                group.longest_rebalance_ms = max(group.longest_rebalance_ms, event.rebalance_ms)
            case MemberRemoved():
                removed = self.group(event.group_id).removed
                removed[event.cause] = removed.get(event.cause, 0) + 1
            case StaticMemberReplaced():
                self.group(event.group_id).static_returns += 1
            case MemberFenced():
                self.group(event.group_id).fenced += 1
            case CoreFailed():
                self.core_failures += 1
            case _:
                pass


def summarise(simulation: Simulation, counter: SummaryCounter) -> Summary:
    """The numbers of a run that has ended."""
    now = simulation.world.now
    for group_id in simulation.scenario.groups:
        group = counter.group(group_id)
        group.stopped_ms = simulation.ownership.stopped_ms.get(group_id, 0)
    for key, state in simulation.ownership.partitions.items():
        group = counter.group(key.group_id)
        group.unowned_ms += state.unowned_ms
        group.worst_unowned_ms = max(group.worst_unowned_ms, state.worst_ms)
    for (group_id, topic, partition), ledger in simulation.accounting.ledgers.items():
        group = counter.group(group_id)
        group.processed += ledger.processed
        group.twice += ledger.twice
        group.late += ledger.late
        group.lost += sum(gap.end - gap.start for gap in ledger.lost())
        reached = ledger.spans[-1].end if ledger.spans else (ledger.first or 0)
        if not simulation.cluster.topics[topic].is_gone:
            group.behind += max(0, simulation.cluster.topics[topic].end(partition, now) - reached)
    for (group_id, topic, partition), shared in simulation.shares.ledgers.items():
        group = counter.group(group_id)
        group.processed += len(shared.accepted)
        group.twice += shared.twice
        group.late += shared.late
        if not simulation.cluster.topics[topic].is_gone:
            group.behind += max(0, simulation.log_ends.end(topic, partition, now) - shared.settled)
    ordered = {group_id: counter.group(group_id) for group_id in simulation.scenario.groups}
    readers = {name: summarise_reader(simulation, reader) for name, reader in simulation.readers.items()}
    for group_id, spec in simulation.scenario.groups.items():
        read = [readers[name] for name, reader in simulation.scenario.readers.items() if _reads(reader, spec)]
        for found in sorted(read, key=lambda each: each.isolation)[:1]:
            ordered[group_id].out_twice, ordered[group_id].out_lost = found.twice, found.lost
    logged = (
        list(logged_records(simulation.cluster, simulation.scenario.written_topics)) if simulation.producers else []
    )
    return Summary(
        now,
        simulation.seed,
        ordered,
        counter.core_failures,
        simulation.world.steps,
        {name: summarise_producer(name, actors, logged) for name, actors in simulation.producers.items()},
        {
            group_id: summarise_transactions(simulation, group_id)
            for group_id, group in simulation.scenario.groups.items()
            if group.commit == "transaction"
        },
        readers,
        {
            group_id: summarise_shares(simulation.shares.of_group(group_id))
            for group_id in share_groups(simulation.scenario)
        },
        {group_id: simulation.tasks.summary_of(group_id, now) for group_id in applications(simulation.scenario)},
    )


def _reads(reader: ReaderSpec, group: GroupSpec) -> bool:
    return group.transform is not None and group.transform.to in reader.topics


ROWS: tuple[tuple[str, Callable[[GroupSummary], Any]], ...] = (
    ("rebalances", lambda group: group.started),
    ("  by cause", lambda group: causes(group.rebalances)),
    ("members removed", lambda group: causes(group.removed)),
    ("static members back", lambda group: group.static_returns),
    ("requests fenced", lambda group: group.fenced),
    ("longest rebalance", lambda group: span(group.longest_rebalance_ms)),
    ("partition-seconds unowned", lambda group: f"{group.unowned_ms / 1_000:.1f}"),
    ("longest without an owner", lambda group: span(group.worst_unowned_ms)),
    ("consumer-seconds stopped", lambda group: f"{group.stopped_ms / 1_000:.1f}"),
    ("partitions moved", lambda group: group.moved),
    ("records processed", lambda group: group.processed),
    ("  late", lambda group: group.late),
    ("  twice", lambda group: group.twice),
    ("  lost", lambda group: group.lost),
    ("  still to come", lambda group: group.behind),
)
"""The lines of a summary: name and value."""


def causes(counts: dict[str, int]) -> str:
    """Counts by name, most first: ``join-new 3, leave 1``."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda e: (-e[1], e[0]))) or "none"


def show(summary: Summary) -> list[str]:
    """The summary as lines."""
    lines = []
    for group_id, group in summary.groups.items():
        lines.append(f"{group_id}, {span(summary.horizon_ms)}, seed {summary.seed}")
        lines += _lines(ROWS, group)
        if group_id in summary.shares:
            lines += _lines(SHARE_ROWS, summary.shares[group_id])
        if group_id in summary.applications:
            lines += _lines(STREAMS_ROWS, summary.applications[group_id])
        if group_id in summary.transactions:
            lines += _lines(TRANSACTION_ROWS, summary.transactions[group_id])
    for name, producer in summary.producers.items():
        lines.append(f"{name}, {span(summary.horizon_ms)}, seed {summary.seed}")
        lines += _lines(PRODUCER_ROWS, producer)
    for name, reader in summary.readers.items():
        lines.append(f"{name}, {span(summary.horizon_ms)}, seed {summary.seed}")
        lines += _lines(READER_ROWS, reader)
    if summary.core_failures:
        lines.append(f"  the core failed {summary.core_failures} times: that is a bug, please report it")
    return lines


def _lines(rows: tuple[tuple[str, Callable[[Part], Any]], ...], part: Part) -> list[str]:
    return [f"  {label:<26} {value(part)}" for label, value in rows]
