"""Ends of the logs that groups read, at any instant of a run: of synthetic logs, and of those that producers write."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import read_batch
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.disk import Log
from rejoin.simulation.kernel import Millis


@dataclass(slots=True)
class _RealLog:
    """Record times of a real log, as far as it has been read."""

    batches: int = 0
    """Number of batches read so far."""
    written_at: list[Millis] = field(default_factory=list)
    """By offset: when this record and all before it were written."""

    def read(self, log: Log) -> list[Millis]:
        """The times of all records in the log by now."""
        for entry in log.records[self.batches :]:
            assert isinstance(entry, BatchEntry), "nothing is deleted or compacted within a run"
            header = parse_header(entry.data)
            for record in read_batch(entry.data):
                at = header.base_timestamp + record.timestamp_delta
                self.written_at.append(max(at, self.written_at[-1]) if self.written_at else at)
        self.batches = len(log.records)
        return self.written_at


class LogEnds:
    """Where logs end, and when their records were written.

    A synthetic log ends where its rate puts it. Records of a real log were written when their producers say.
    """

    def __init__(self, cluster: Cluster, written_topics: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._written = frozenset(written_topics)
        self._logs: dict[TopicPartition, _RealLog] = {}

    def end(self, topic: str, partition: int, at: Millis) -> int:
        """The offset behind the last record that was written by an instant."""
        if topic not in self._written:
            return self._cluster.topics[topic].end(partition, at)
        return bisect_right(self._times(topic, partition), at)

    def written_at(self, topic: str, partition: int, offset: int) -> Millis:
        """When a record was written that the log has."""
        if topic not in self._written:
            return self._cluster.topics[topic].written_at(partition, offset)
        return self._times(topic, partition)[offset]

    def _times(self, topic: str, partition: int) -> list[Millis]:
        place = TopicPartition(topic, partition)
        log = self._cluster.disk.log(self._cluster.log_of(place))
        return self._logs.setdefault(place, _RealLog()).read(log)
