"""OffsetFetch: the committed offsets of one group. Unknown ones are -1 without an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated

NO_OFFSET = -1


def fetch_offsets(
    offsets: GroupOffsets | None, request: OffsetFetchRequestGroup, *, stable: bool, refused: Mapping[str, ErrorCode]
) -> OffsetFetchResponseGroup:
    """Read offsets; none where the group, the topic or the offset is unknown. ``stable`` reports open transactions,
    and ``refused`` has the errors of topics that the client may not see, or that there are not.
    """
    wanted: Iterable[tuple[str, Sequence[int]]] = ()
    if request.topics is not None:
        # Kafka: KafkaApis.fetchOffsetsForGroup. A topic that is named twice is answered twice; refused ones come last.
        named = sorted(request.topics, key=lambda topic: topic.name in refused) if refused else request.topics
        wanted = [(topic.name, topic.partition_indexes) for topic in named]
    elif offsets is not None:
        of_topics: dict[str, list[int]] = {}
        for partition in sorted(offsets.stored):
            if partition.topic not in refused:
                of_topics.setdefault(partition.topic, []).append(partition.partition)
        wanted = of_topics.items()
    topics = tuple(
        [
            OffsetFetchResponseTopics(
                name=name, partitions=_fetch_topic(offsets, name, each, stable, refused.get(name))
            )
            for name, each in wanted
        ]
    )
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _fetch_topic(
    offsets: GroupOffsets | None, topic: str, indexes: Sequence[int], stable: bool, refused: ErrorCode | None
) -> tuple[OffsetFetchResponsePartitions, ...]:
    if offsets is None or refused is not None:
        return tuple([no_offset(index, refused or ErrorCode.NONE) for index in indexes])
    may_be_pending = stable and bool(offsets.pending)
    stored = offsets.stored
    found = []
    for index in indexes:
        partition = TopicPartition(topic, index)
        value = stored.get(partition)
        if may_be_pending and offsets.is_pending(partition):
            found.append(no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif value is None:
            found.append(no_offset(index, ErrorCode.NONE))
        else:
            found.append(
                unvalidated(
                    OffsetFetchResponsePartitions,
                    partition_index=index,
                    committed_offset=value.offset,
                    committed_leader_epoch=value.leader_epoch,
                    metadata=value.metadata,
                    error_code=ErrorCode.NONE,
                )
            )
    return tuple(found)


def no_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    """A partition without an offset to show."""
    return unvalidated(
        OffsetFetchResponsePartitions,
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=-1,
        metadata="",
        error_code=error,
    )
