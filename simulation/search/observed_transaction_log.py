"""Observations of the transaction log: what was decided in it, beside what the logs of records and offsets say."""

from __future__ import annotations

from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.transactions.log import read_transactions
from rejoin.coordinator.core.transactions.metadata import IS_COMPLETE, IS_DECIDED, TransactionState
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TransactionLogValue
from rejoin.protocol.types import LogPartition, TopicIdPartition
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch
from rejoin.simulation.search.observed_transactions import ObservedTransactions
from rejoin.simulation.simulation import Simulation


class ObservedTransactionLog:
    """The newest record of each transactional id, and where other logs disagree with it."""

    def __init__(self, simulation: Simulation, transactions: ObservedTransactions) -> None:
        self.simulation = simulation
        self.newest: dict[str, TransactionLogValue] = {}
        """By transactional id."""
        self.without_decision: list[str] = []
        """Markers that stand in a log and were never decided."""
        self.left_open: list[str] = []
        """Transactions that are complete, and open in a log; before transaction.version 2 there may be some."""
        self._transactions = transactions
        self._decided: dict[tuple[int, int], bool] = {}
        """By producer id and epoch: whether the last decision was a commit."""
        simulation.disk.on_append.append(self._on_append)

    def _on_append(self, append: Append) -> None:
        partition = append.partition
        if isinstance(partition, TopicIdPartition) and partition.topic == TRANSACTION_STATE_TOPIC:
            for entry in append.records:
                assert isinstance(entry, BatchEntry), "nothing is deleted or compacted within a run"
                for transactional_id, value in read_transactions(entry.data):
                    if value is not None:
                        self._changed(transactional_id, value)
            return
        for record in append.records:
            if isinstance(record, TransactionMarker):
                self._marked(partition, record.producer_id, record.producer_epoch, record.committed)
            elif isinstance(record, BatchEntry) and (header := parse_header(record.data)).is_control:
                marker = EndTransactionMarker.of(read_batch(record.data)[0])
                commits = marker is not None and marker.control_type is ControlRecordType.COMMIT
                self._marked(partition, header.producer_id, header.producer_epoch, commits)

    def _changed(self, transactional_id: str, value: TransactionLogValue) -> None:
        self.newest[transactional_id] = value
        state = TransactionState(value.transaction_status)
        if state in IS_DECIDED:
            commits = state is TransactionState.PREPARE_COMMIT
            self._decided[value.producer_id, value.producer_epoch] = commits
        elif state in IS_COMPLETE:
            ended = value.previous_producer_id if value.previous_producer_id >= 0 else value.producer_id
            self.left_open += [
                f"{transactional_id}: {state.name} in the transaction log, open in {partition}"
                for partition in self._open_in(ended)
            ]

    def _open_in(self, producer_id: int) -> list[LogPartition]:
        data = [partition for partition, batch in self._transactions.open_batches() if batch.producer_id == producer_id]
        logs = self.simulation.disk.logs
        return [*data, *(partition for partition, log in logs.items() if producer_id in log.pending)]

    def _marked(self, partition: LogPartition, producer_id: int, epoch: int, commits: bool) -> None:
        if self._decided.get((producer_id, epoch)) is not commits:
            kind = "COMMIT" if commits else "ABORT"
            self.without_decision.append(f"{partition}: {kind} of producer {producer_id}, epoch {epoch}")

    def was_decided(self, producer_id: int, epoch: int, commits: bool) -> bool:
        """Whether the log has this end of a producer's transaction, whose batches have an epoch."""
        # From transaction.version 2 on the decision raises the epoch.
        return commits in (self._decided.get((producer_id, epoch)), self._decided.get((producer_id, epoch + 1)))

    def is_open(self) -> bool:
        """Whether a transactional id has a transaction that is not complete."""
        return any(
            (state := TransactionState(value.transaction_status)) is TransactionState.ONGOING or state in IS_DECIDED
            for value in self.newest.values()
        )
