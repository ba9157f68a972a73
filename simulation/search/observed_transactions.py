"""Observations of transactions: records in the logs, when they were written, and when producers were fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rejoin.coordinator.core.effects import Append
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdResponse
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch
from rejoin.simulation.actors.readers import ReaderActor
from rejoin.simulation.actors.transformers import OutputRecord
from rejoin.simulation.kernel import Millis
from rejoin.simulation.output.transformed_records import ReaderSummary, summarise_reader
from rejoin.simulation.simulation import Simulation


@dataclass(slots=True)
class TransactionalBatch:
    """A batch of a transaction in a log. Instants count what was observed: which of two came first."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    appended: int
    written_at: Millis
    works: Counter[str]
    """How many records it has of each work that was transformed."""
    ended: int | None = None
    committed: bool = False


class ObservedTransactions:
    """The logs that transforms write to, as they grow."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.batches: dict[TopicPartition, list[TransactionalBatch]] = {}
        self.logged: Counter[str] = Counter()
        """How many records of each work are in the logs and not aborted."""
        self.written_by_fenced: list[str] = []
        """Batches that were written when a successor of their producer had its epoch."""
        self._open: dict[TopicIdPartition, dict[int, list[TransactionalBatch]]] = {}
        self._fences: dict[int, list[tuple[int, int]]] = {}
        self._observed = 0
        self._looked_at: dict[str, int] = {}
        self._partitions = {
            (log.topic_id, index): log
            for topic in simulation.scenario.written_topics
            for index in range(simulation.scenario.topics[topic].partitions)
            for log in (simulation.cluster.log_of(TopicPartition(topic, index)),)
        }
        simulation.disk.on_append.append(self._on_append)

    # -- observing

    def _on_append(self, append: Append) -> None:
        partition = append.partition
        if not isinstance(partition, TopicIdPartition) or partition.topic == TRANSACTION_STATE_TOPIC:
            return
        self._observed += 1
        open_here = self._open.setdefault(partition, {})
        for entry in append.records:
            assert isinstance(entry, BatchEntry), "nothing is deleted or compacted within a run"
            header = parse_header(entry.data)
            if header.is_control:
                marker = EndTransactionMarker.of(read_batch(entry.data)[0])
                for batch in open_here.pop(header.producer_id, ()):
                    batch.ended = self._observed
                    batch.committed = marker is not None and marker.control_type is ControlRecordType.COMMIT
                    if not batch.committed:
                        self.logged.subtract(batch.works)
            elif header.is_transactional:
                works = Counter(OutputRecord.of(each.value or b"").work for each in read_batch(entry.data))
                self.logged += works
                found = TransactionalBatch(
                    entry.base_offset,
                    header.last_offset_delta + entry.base_offset,
                    header.producer_id,
                    header.producer_epoch,
                    self._observed,
                    self.simulation.world.now,
                    works,
                )
                self.batches.setdefault(TopicPartition(partition.topic, partition.partition), []).append(found)
                if self.has_successor(header.producer_id, header.producer_epoch):
                    where = f"{partition}, offset {found.base_offset}"
                    self.written_by_fenced.append(
                        f"{where}: producer {header.producer_id}, epoch {header.producer_epoch}"
                    )
                open_here.setdefault(header.producer_id, []).append(found)

    def initialised(self, response: InitProducerIdResponse) -> None:
        """A producer has a new epoch: who has an older one is fenced."""
        self._observed += 1
        fence = (response.producer_epoch, self._observed)
        self._fences.setdefault(response.producer_id, []).append(fence)

    def newly_read(self, reader: ReaderActor) -> list[str]:
        """The works of which a reader has got records since this was last asked."""
        records = reader.records[self._looked_at.get(reader.name, 0) :]
        self._looked_at[reader.name] = len(reader.records)
        return list(dict.fromkeys(OutputRecord.of(each.value).work for each in records))

    # -- questions

    def log_of(self, topic_id: str, index: int) -> TopicIdPartition | None:
        """A partition that transforms write to."""
        return self._partitions.get((topic_id, index))

    def first_open(self, partition: TopicIdPartition) -> int | None:
        """Where the oldest transaction begins that is open in a log, or none."""
        batches = self._open.get(partition)
        return min((each[0].base_offset for each in batches.values()), default=None) if batches else None

    def first_open_of(self, partition: TopicPartition) -> int | None:
        """As above, for a partition by its name."""
        index = partition.partition
        named = (
            log for (_, number), log in self._partitions.items() if number == index and log.topic == partition.topic
        )
        log = next(named, None)
        return None if log is None else self.first_open(log)

    def open_batches(self) -> Iterator[tuple[TopicIdPartition, TransactionalBatch]]:
        """The first batch of every open transaction, by partition."""
        for partition, by_producer in self._open.items():
            for batches in by_producer.values():
                yield partition, batches[0]

    def has_successor(self, producer_id: int, epoch: int) -> bool:
        """Whether InitProducerId has given out a newer epoch of a producer id."""
        return any(given > epoch for given, _ in self._fences.get(producer_id, ()))

    def is_fenced(self, batch: TransactionalBatch) -> bool:
        """Whether the producer was fenced before the batch was written, or before the commit was decided."""
        last = max(batch.appended, batch.ended or 0)
        return any(epoch > batch.producer_epoch and at < last for epoch, at in self._fences.get(batch.producer_id, ()))

    def committed_only(self) -> list[ReaderSummary]:
        """The numbers of each reader of committed records."""
        readers = [reader for reader in self.simulation.readers.values() if reader.reads_committed]
        return [summarise_reader(self.simulation, reader) for reader in readers]

    def all_ended(self) -> bool:
        """Whether all that went in has come out, and no transaction is open."""
        if any(True for _ in self.open_batches()):
            return False
        return not any(each.to_come or each.unread or each.lost for each in self.committed_only())
