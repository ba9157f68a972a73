"""Results by partition, in the order of the request: the form of several responses about offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Struct
from rejoin.protocol.types import TopicPartition


class RequestedPartition(Protocol):
    """A partition that a request names."""

    @property
    def partition_index(self) -> int: ...


class RequestedTopic(Protocol):
    """A topic that a request names, with some of its partitions."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Iterable[RequestedPartition]: ...


Topic = TypeVar("Topic", bound=Struct)


def results_of(
    requested: Iterable[RequestedTopic],
    topic_type: type[Topic],
    partition_type: type[Struct],
    errors: Mapping[TopicPartition, ErrorCode],
    others: ErrorCode,
) -> tuple[Topic, ...]:
    """A result for each partition that a request names: ``others`` where ``errors`` has none."""
    new_topic: Any = topic_type
    new_partition: Any = partition_type
    return tuple(
        new_topic(
            name=topic.name,
            partitions=tuple(
                new_partition(
                    partition_index=partition.partition_index,
                    error_code=errors.get(TopicPartition(topic.name, partition.partition_index), others)
                    if errors
                    else others,
                )
                for partition in topic.partitions
            ),
        )
        for topic in requested
    )
