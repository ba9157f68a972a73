"""Fate of produced records: the logs compared with the responses to producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import read_batch
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.producers import ProducerActor


class LoggedRecord(NamedTuple):
    """A record in a log: where it is, who wrote it, and its number there."""

    partition: TopicPartition
    offset: int
    producer: str
    number: int


@dataclass(slots=True)
class ProducerSummary:
    """Producers of one name: what they wrote, which answers they got, and what is in the logs."""

    name: str
    written: int = 0
    acknowledged: int = 0
    failed: int = 0
    pending: int = 0
    requests: int = 0
    lost: int = 0
    """Acknowledged, and in no log."""
    twice: int = 0
    """Copies beyond the first."""
    stored_though_failed: int = 0
    out_of_order: int = 0
    """Records whose first copy stands behind a later one of their producer in the same partition."""
    misplaced: int = 0
    """Records that are elsewhere than acknowledged."""


def logged_records(cluster: Cluster, topics: Iterable[str]) -> Iterator[LoggedRecord]:
    """Every record in the real logs, by partition and offset."""
    for topic in topics:
        for index in range(len(cluster.topics[topic].partitions)):
            partition = TopicPartition(topic, index)
            for entry in cluster.disk.log(cluster.log_of(partition)).records:
                assert isinstance(entry, BatchEntry), "nothing is deleted or compacted within a run"
                if parse_header(entry.data).is_control:
                    continue
                for record in read_batch(entry.data):
                    producer, _, number = (record.value or b"").decode().rpartition("/")
                    yield LoggedRecord(partition, entry.base_offset + record.offset_delta, producer, int(number))


def summarise_producer(name: str, producers: Iterable[ProducerActor], logged: list[LoggedRecord]) -> ProducerSummary:
    """The numbers of the producers of one name."""
    summary = ProducerSummary(name)
    for producer in producers:
        own = [record for record in logged if record.producer == producer.name]
        copies = Counter(record.number for record in own)
        places = {(record.partition, record.offset): record.number for record in own}
        newest: dict[TopicPartition, int] = {}
        seen: set[int] = set()
        for record in own:
            if record.number not in seen:
                summary.out_of_order += record.number < newest.get(record.partition, -1)
                newest[record.partition] = max(record.number, newest.get(record.partition, -1))
                seen.add(record.number)
        summary.written += producer.written
        summary.acknowledged += len(producer.acknowledged)
        summary.failed += len(producer.failures)
        summary.pending += producer.pending
        summary.requests += producer.requests
        summary.twice += sum(count - 1 for count in copies.values())
        summary.lost += sum(1 for number in producer.acknowledged if number not in copies)
        summary.stored_though_failed += sum(1 for number in producer.failures if number in copies)
        summary.misplaced += sum(
            1
            for number, place in producer.acknowledged.items()
            if place.offset >= 0 and number in copies and places.get((place.partition, place.offset)) != number
        )
    return summary


PRODUCER_ROWS: tuple[tuple[str, Callable[[ProducerSummary], Any]], ...] = (
    ("records written", lambda producer: producer.written),
    ("  acknowledged", lambda producer: producer.acknowledged),
    ("  failed", lambda producer: producer.failed),
    ("  without an answer yet", lambda producer: producer.pending),
    ("  acknowledged and lost", lambda producer: producer.lost),
    ("  failed and yet stored", lambda producer: producer.stored_though_failed),
    ("  copies too many", lambda producer: producer.twice),
    ("  out of order", lambda producer: producer.out_of_order),
    ("Produce requests", lambda producer: producer.requests),
)
"""The lines of a summary: name and value."""
