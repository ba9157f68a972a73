"""Groups and offsets as the log has them: what each record of ``__consumer_offsets`` does while it is replayed."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.kinds import Kinds
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.offsets.store import OffsetStore
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.consumer_offsets import OffsetRecord
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.records.table import BY_RECORD
from rejoin.protocol.types import TopicPartition

MOST_AHEAD_MS: Final = 30 * 86_400_000
"""A clock that was set back by more is not made up for."""


class Replay:
    """Brings the groups, offsets and statistics of one shard to where the log was left."""

    def __init__(self, ctx: StepContext, groups: dict[str, Group], offsets: OffsetStore, kinds: Kinds) -> None:
        self._ctx = ctx
        self._groups = groups
        self._offsets = offsets
        self._kinds = kinds
        self.newest_at: Millis = 0
        """The newest instant that a record has, as far as it may be the coordinator's own."""

    def replay(self, record: Record) -> None:
        if isinstance(record, TransactionMarker):
            for offsets in self._offsets.values():
                offsets.end_transaction(record.producer_id, record.committed)
            return
        if isinstance(record, OffsetRecord):
            self._replay_offset(record)
        else:
            self._saw(self._kinds.of_records(BY_RECORD[type(record)].owner).replay(record))

    def _replay_offset(self, record: OffsetRecord) -> None:
        key = record.key.data
        partition = TopicPartition(key.topic, key.partition)
        if record.value is None:
            known = self._offsets.get(key.group)
            if known is not None:
                known.remove(partition)
            return
        self._saw(record.value.data.commit_timestamp)
        if key.group not in self._groups:
            self._groups[key.group] = self._kinds.classic.loaded_group(key.group)
        offsets = self._offsets.of(key.group)
        if record.producer_id != -1:
            offsets.hold(record.producer_id, partition, record.value.data)
        else:
            offsets.store(partition, record.value.data)

    def _saw(self, at: Millis) -> None:
        # The oldest commits carry an instant of their client's, which may be anything.
        if self.newest_at < at <= self._ctx.now + MOST_AHEAD_MS:
            self.newest_at = at
