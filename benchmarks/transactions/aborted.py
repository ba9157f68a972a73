"""Reading a log with 100,000 aborted transactions: a reader of committed records beside one of all records.

Both get the same bytes; the first also gets the aborted transactions that they belong to. In one log transactions
follow each other, in the other one more is open meanwhile, from the first record to the last. CPU time of one Fetch
through a node, with the bytes of its answer; and what it takes to load such a log. It fails where a reader of committed
records takes more than ``MOST`` times as long as one of all records, wherever it reads and however much: each pays for
what it is given, and not for what the log has.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.node_step import Replies, started
from benchmarks.transactions.producers import START, TOPIC, batch
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.partitions.log import READ_COMMITTED, READ_UNCOMMITTED
from rejoin.posix import calm_collector
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.registry import FETCH
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.control_batches import marker_batch
from rejoin.protocol.wire.record_batch import MAGIC_AT, parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker
from rejoin.transcript.driver import NodeDriver

ABORTED = 100_000
PRODUCERS: Final = 100
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
POSITIONS: Final = {"the beginning": 0.0, "the middle": 0.5, "the end": 0.97}
REQUESTS = 20
ROUNDS = 5
MOST: Final = 10.0
FETCH_VERSION: Final = 12
_LONG_ONE: Final = PRODUCERS
_ABORT: Final = EndTransactionMarker(ControlRecordType.ABORT, 0)


def entries(*, with_open: bool) -> Iterator[BatchEntry]:
    """A log of transactions, each of which has a record and is aborted; one more may be open meanwhile."""
    offset = 0

    def add(data: bytes) -> BatchEntry:
        nonlocal offset
        offset += 1
        return BatchEntry(offset - 1, parse_header(data).with_position(offset - 1, 0).pack_start() + data[MAGIC_AT:])

    def abort(producer_id: int, epoch: int) -> BatchEntry:
        return add(marker_batch(producer_id, epoch, _ABORT, 0, 0, START)[0])

    if with_open:
        yield add(batch(_LONG_ONE, 0))
    for number in range(ABORTED):
        epoch, producer_id = divmod(number, PRODUCERS)
        yield add(batch(producer_id, epoch))
        yield abort(producer_id, epoch)
    if with_open:
        yield abort(_LONG_ONE, 0)


@dataclass(slots=True)
class Loaded:
    """A node with such a log."""

    driver: NodeDriver
    replies: Replies
    end_offset: int
    seconds: float

    def fetch(self, offset: int, size: int, isolation_level: int) -> Any:
        """The answer to a Fetch, written as it travels; it waits for nothing."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
        topics = (FetchTopic(topic=TOPIC, partitions=(partition,)),)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=size, isolation_level=isolation_level, topics=topics
        )
        codec = codec_of(FETCH.key, FETCH_VERSION)
        assert codec is not None, "the version is known"
        self.driver.step(Received("fetch", request, Context(FETCH_VERSION, "bench")))
        answer = self.replies.by_token.pop("fetch")
        codec.response_parts(1, answer)
        return answer.responses[0].partitions[0]


def loaded(*, with_open: bool) -> Loaded:
    """Let a node read the log of the topic."""
    replies = Replies()
    driver = started(replies)
    driver.now = START
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
    driver.request("create", CreateTopicsRequest(topics=(topic,)), Context(7))
    created: Any = replies.by_token.pop("create")
    log = driver.logs.of(TopicIdPartition(created.topics[0].topic_id, 0, TOPIC))
    log.records.extend(entries(with_open=with_open))
    partitions = [offsets_partition(index) for index in range(driver.node.settings.offsets_topic_num_partitions)]
    for each in partitions:
        driver.resign(each)
    began = time.process_time()
    for each in partitions:
        driver.elect(each)
    return Loaded(driver, replies, len(log.records), time.process_time() - began)


def micros(log: Loaded, offset: int, size: int, isolation_level: int) -> float:
    """The CPU of one Fetch."""
    began = time.process_time()
    for _ in range(REQUESTS):
        log.fetch(offset, size, isolation_level)
    return (time.process_time() - began) / REQUESTS * 1e6


def main() -> int:
    """Measure, and print a table. Returns 1 where the bound is missed."""
    calm_collector()
    table = Table(title=f"one Fetch over {ABORTED:,} aborted transactions, CPU µs (median of {ROUNDS} rounds)")
    for column in ("log", "from", "bytes", "aborted", "read_uncommitted", "read_committed", "÷", "µs more for each"):
        table.add_column(column, justify="left" if column in ("log", "from") else "right")
    largest = 0.0
    logs = {"one after the other": loaded(with_open=False), "within one more": loaded(with_open=True)}
    for name, log in logs.items():
        for position, part in POSITIONS.items():
            for size in SIZES:
                offset = int(log.end_offset * part)
                given = log.fetch(offset, size, READ_COMMITTED)
                assert given.high_watermark == given.last_stable_offset == log.end_offset, given
                all_records, committed = [
                    median(micros(log, offset, size, level) for _ in range(ROUNDS))
                    for level in (READ_UNCOMMITTED, READ_COMMITTED)
                ]
                more = (committed - all_records) / max(1, len(given.aborted_transactions))
                row = (f"{len(given.records):,}", f"{len(given.aborted_transactions):,}", f"{all_records:,.0f}")
                ratio = committed / max(all_records, 0.01)
                largest = max(largest, ratio)
                table.add_row(name, position, *row, f"{committed:,.0f}", f"{ratio:.1f}", f"{more:.2f}")
    printer().print(table)
    for name, log in logs.items():
        micros_each = log.seconds / log.end_offset * 1e6
        print(f"loading the log, {name}: {log.seconds:.2f} s of CPU, {micros_each:.1f} µs a batch")
    is_met = largest <= MOST
    print(f"read_committed, aim ≤ {MOST:g} × read_uncommitted: {largest:.1f}, {'met' if is_met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
