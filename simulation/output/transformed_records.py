"""Output of transforms compared with their input, record for record, as a reader got it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any, NamedTuple

from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.units import format_duration
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.readers import ReaderActor
from rejoin.simulation.actors.transactional_transformers import TransactionalTransformActor, TransactionOutcome
from rejoin.simulation.actors.transformers import OutputRecord
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.writers import ReaderSpec
from rejoin.simulation.simulation import Simulation


class Fate(Enum):
    """Outcome of a record's transaction in a log."""

    NONE = "none"
    """The record belongs to no transaction."""
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class LoggedOutput(NamedTuple):
    """A record that a transform wrote, as it is in a log."""

    partition: TopicPartition
    offset: int
    record: OutputRecord
    fate: Fate


def logged_outputs(cluster: Cluster, partition: TopicPartition) -> Iterator[LoggedOutput]:
    """Every record that transforms wrote to a partition, in log order."""
    outputs: list[tuple[int, OutputRecord]] = []
    fates: list[Fate] = []
    open_of: dict[int, list[int]] = {}
    for entry in cluster.disk.log(cluster.log_of(partition)).records:
        assert isinstance(entry, BatchEntry), "nothing is deleted or compacted within a run"
        header = parse_header(entry.data)
        records = read_batch(entry.data)
        if header.is_control:
            marker = EndTransactionMarker.of(records[0])
            is_commit = marker is not None and marker.control_type is ControlRecordType.COMMIT
            for index in open_of.pop(header.producer_id, ()):
                fates[index] = Fate.COMMITTED if is_commit else Fate.ABORTED
            continue
        for record in records:
            if header.is_transactional:
                open_of.setdefault(header.producer_id, []).append(len(outputs))
            fates.append(Fate.OPEN if header.is_transactional else Fate.NONE)
            outputs.append((entry.base_offset + record.offset_delta, OutputRecord.of(record.value or b"")))
    for (offset, record), fate in zip(outputs, fates, strict=True):
        yield LoggedOutput(partition, offset, record, fate)


def visible_works(simulation: Simulation, reader: ReaderActor) -> tuple[Counter[str], set[str]]:
    """How many records of each batch of work a reader has read, or finds next; and what has no end yet."""
    found = Counter(OutputRecord.of(read.value).work for read in reader.records)
    open_works: set[str] = set()
    positions = reader.positions()
    for partition in reader.partitions:
        for output in logged_outputs(simulation.cluster, partition):
            if output.fate is Fate.OPEN:
                open_works.add(output.record.work)
            elif output.offset >= positions.get(partition, 0) and output.fate is not Fate.ABORTED:
                found[output.record.work] += 1
    return found, open_works


def committed_offsets(simulation: Simulation, group_id: str) -> dict[TopicPartition, int]:
    """Where a group goes on, as its coordinator knows it; nothing where there is none just now."""
    node = simulation.cluster.leader_of(group_id)
    if node is None or node.core is None:
        return {}
    offsets = node.core.describe_offsets(group_id, simulation.world.now)
    return {TopicPartition(each.topic, each.partition): each.offset for each in offsets}


# -- readers


@dataclass(slots=True)
class ReaderSummary:
    """Records that a reader got, of those that went into the transforms it reads from.

    Each of these was read, or is lost, or is written and not read yet, or is still to come; or its topic was deleted.
    """

    name: str
    isolation: str
    went_in: int = 0
    """Each counts as often as records are made from it."""
    read: int = 0
    lost: int = 0
    """Committed as processed, and nowhere in what can be read."""
    twice: int = 0
    """Copies beyond the first."""
    out_of_order: int = 0
    """Records that came behind a later one of the same partition, where both came out in the same partition."""
    aborted: int = 0
    """Records of transactions that were aborted."""
    unread: int = 0
    to_come: int = 0
    median_delay: Millis = 0
    """From when a record was there to be transformed until the reader had what was made from it, for the first time."""
    longest_delay: Millis = 0


def summarise_reader(simulation: Simulation, reader: ReaderActor) -> ReaderSummary:
    """The numbers of a reader at the end of a run."""
    summary = ReaderSummary(reader.name, reader.config.isolation_level, read=len(reader.records))
    fates = {}
    ahead: set[tuple[TopicPartition, int, int]] = set()
    positions = reader.positions()
    for partition in reader.partitions:
        for output in logged_outputs(simulation.cluster, partition):
            fates[partition, output.offset] = output.fate
            if output.offset >= positions.get(partition, 0) and output.fate is not Fate.ABORTED:
                ahead.add(_what(output.record))
    copies: Counter[tuple[TopicPartition, int, int]] = Counter()
    newest: dict[tuple[TopicPartition, TopicPartition], int] = {}
    delays: list[Millis] = []
    for read in reader.records:
        summary.aborted += fates.get((read.partition, read.offset)) is Fate.ABORTED
        record = OutputRecord.of(read.value)
        if _what(record) not in copies:
            way = (record.origin, read.partition)
            summary.out_of_order += record.offset < newest.get(way, -1)
            newest[way] = max(record.offset, newest.get(way, -1))
            log = simulation.cluster.topics[record.origin.topic]
            delays.append(read.at - log.written_at(record.origin.partition, record.offset))
        copies[_what(record)] += 1
    summary.twice = sum(count - 1 for count in copies.values())
    summary.median_delay = round(median(delays)) if delays else 0
    summary.longest_delay = max(delays, default=0)
    for group_id, group in transforms_read_by(simulation.scenario.readers[reader.name], simulation.scenario).items():
        assert group.transform is not None, "a group that transforms"
        outputs = range(group.transform.outputs)
        committed = committed_offsets(simulation, group_id)
        for topic in group.topics:
            for index in range(len(simulation.cluster.topics[topic].partitions)):
                origin = TopicPartition(topic, index)
                end = simulation.cluster.topics[topic].end(index, simulation.world.now)
                summary.went_in += end * len(outputs)
                wanted = ((origin, offset, output) for offset in range(end) for output in outputs)
                missing = [each for each in wanted if each not in copies]
                unread = sum(1 for each in missing if each in ahead)
                done = committed.get(origin, 0)
                lost = sum(1 for each in missing if each[1] < done and each not in ahead)
                summary.unread += unread
                summary.lost += lost
                if not simulation.cluster.topics[topic].is_gone:
                    summary.to_come += len(missing) - unread - lost
    return summary


def _what(record: OutputRecord) -> tuple[TopicPartition, int, int]:
    return record.origin, record.offset, record.output


def transforms_read_by(reader: ReaderSpec, scenario: Scenario) -> dict[str, GroupSpec]:
    """The groups whose transforms write to the topics of a reader."""
    return {
        group_id: group
        for group_id, group in scenario.groups.items()
        if group.transform is not None and group.transform.to in reader.topics
    }


READER_ROWS: tuple[tuple[str, Callable[[ReaderSummary], Any]], ...] = (
    ("isolation", lambda reader: reader.isolation),
    ("records that went in", lambda reader: reader.went_in),
    ("records read", lambda reader: reader.read),
    ("  twice", lambda reader: reader.twice),
    ("  lost", lambda reader: reader.lost),
    ("  out of order", lambda reader: reader.out_of_order),
    ("  of aborted transactions", lambda reader: reader.aborted),
    ("  written, not read yet", lambda reader: reader.unread),
    ("  still to come", lambda reader: reader.to_come),
    ("delay of a record, median", lambda reader: format_duration(reader.median_delay)),
    ("  longest", lambda reader: format_duration(reader.longest_delay)),
)
"""The lines of a summary: name and value."""


# -- transactions


@dataclass(slots=True)
class TransactionSummary:
    """The transactions of a group, as its processes know them."""

    begun: int = 0
    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    """Begun by a process that ended, or still open."""
    fenced: int = 0
    initialised: int = 0
    handled: int = 0
    """Calls of the user's code, one for a record."""
    handled_again: int = 0


def summarise_transactions(simulation: Simulation, group_id: str) -> TransactionSummary:
    """The numbers of one group."""
    summary = TransactionSummary()
    handled: Counter[tuple[TopicPartition, int]] = Counter()
    for consumer in simulation.consumers.values():
        if isinstance(consumer, TransactionalTransformActor) and consumer.config.group_id == group_id:
            counts = consumer.counts
            summary.begun += len(counts.transactions)
            outcomes = Counter(each.outcome for each in counts.transactions.values())
            summary.committed += outcomes[TransactionOutcome.COMMITTED]
            summary.aborted += outcomes[TransactionOutcome.ABORTED]
            summary.unknown += outcomes[TransactionOutcome.OPEN]
            summary.fenced += counts.fenced
            summary.initialised += counts.initialised
            handled += consumer.handled
    summary.handled = sum(handled.values())
    summary.handled_again = summary.handled - len(handled)
    return summary


TRANSACTION_ROWS: tuple[tuple[str, Callable[[TransactionSummary], Any]], ...] = (
    ("transactions", lambda transactions: transactions.begun),
    ("  committed", lambda transactions: transactions.committed),
    ("  aborted", lambda transactions: transactions.aborted),
    ("  without an end yet", lambda transactions: transactions.unknown),
    ("producers initialised", lambda transactions: transactions.initialised),
    ("producers fenced", lambda transactions: transactions.fenced),
    ("calls of the handler", lambda transactions: transactions.handled),
    ("  again for a record", lambda transactions: transactions.handled_again),
)
"""The lines of a summary: name and value."""
