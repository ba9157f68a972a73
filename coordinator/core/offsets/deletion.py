"""Deleting offsets: on request, because they expired, or because their topic is gone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.offsets.commits import PartitionErrors
from rejoin.coordinator.core.offsets.store import GroupOffsets, OffsetStore, committed_offset
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import OffsetsDeleted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rejoin.protocol.messages.partition_results import ResultTypes, response_of
from rejoin.protocol.records.consumer_offsets import offset_record
from rejoin.protocol.types import TopicPartition

Why: TypeAlias = Literal["requested", "expired", "topic-deleted"]


_RESULTS: Final = ResultTypes(OffsetDeleteResponse, OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)


def delete_response(request: OffsetDeleteRequest, results: PartitionErrors) -> OffsetDeleteResponse:
    """The response to OffsetDelete: no error where ``results`` has none."""
    return response_of(_RESULTS, request.topics, results, ErrorCode.NONE)


class OffsetDeletions:
    """Deletes offsets of one shard's groups."""

    def __init__(self, ctx: StepContext, log: ShardLog, store: OffsetStore) -> None:
        self._ctx = ctx
        self._log = log
        self._store = store

    def delete(self, group: Group, token: Token, request: OffsetDeleteRequest, refused: PartitionErrors) -> None:
        """Handle OffsetDelete. Offsets of topics that the group reads stay."""
        error = group.validate_offset_delete()
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, OffsetDeleteResponse(error_code=error))
            return
        offsets = self._store.get(group.group_id)
        results = dict(refused)
        doomed: list[TopicPartition] = []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if partition in refused:
                    continue
                if subscribed:
                    results[partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif offsets is not None and offsets.has(partition):
                    doomed.append(partition)
        response = delete_response(request, results)
        if doomed and offsets is not None:
            self._append(group.group_id, offsets, doomed, "requested", token, response)
        else:
            self._ctx.reply(token, response)

    def delete_expired(self, group_id: str, partitions: list[TopicPartition]) -> None:
        """Write tombstones for offsets that have outlived their retention."""
        self._append(group_id, self._store.of(group_id), partitions, "expired")

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete the offsets of topics that are gone, in every group; no retention applies."""
        if not topics:
            return
        for group_id, offsets in self._store.items():
            partitions = [partition for partition in offsets.partitions() if partition.topic in topics]
            if partitions:
                self._append(group_id, offsets, partitions, "topic-deleted")

    def _append(
        self,
        group_id: str,
        offsets: GroupOffsets,
        partitions: list[TopicPartition],
        why: Why,
        token: Token | None = None,
        response: OffsetDeleteResponse | None = None,
    ) -> None:
        records = tuple(offset_record(group_id, topic, partition, None) for topic, partition in partitions)
        completion = OffsetDeletionCompletion(self._ctx, group_id, offsets, partitions, why, token, response)
        self._log.append(records, completion)


@dataclass(slots=True)
class OffsetDeletionCompletion(AppendCompletion):
    """Tombstones of offsets being written; with a response, a client waits for them."""

    ctx: StepContext
    group_id: str
    offsets: GroupOffsets
    partitions: list[TopicPartition]
    why: Why
    token: Token | None = None
    response: OffsetDeleteResponse | None = None

    def ended(self, error: ErrorCode) -> None:
        self.ended_late(error)
        if self.response is not None:
            failed = OffsetDeleteResponse(error_code=response_error_of_write(error))
            self.ctx.reply(self.token, self.response if error is ErrorCode.NONE else failed)

    def ended_late(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            return
        gone = [(partition, self.offsets.remove(partition)) for partition in self.partitions]
        self.ctx.emit(
            OffsetsDeleted(
                group_id=self.group_id,
                reason=self.why,
                offsets=[committed_offset(partition, value) for partition, value in gone if value is not None],
            )
        )
