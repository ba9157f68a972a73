"""Results by partition, in the order of the request: the form of several responses about offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
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
    results = []
    for topic in requested:
        name = topic.name
        if errors:
            found = [
                _result(partition_type, index, errors.get(TopicPartition(name, index), others))
                for index in [partition.partition_index for partition in topic.partitions]
            ]
        else:
            found = [_result(partition_type, partition.partition_index, others) for partition in topic.partitions]
        results.append(new_topic(name=name, partitions=tuple(found)))
    return tuple(results)


@lru_cache(maxsize=4_096)
def _result(partition_type: Any, partition_index: int, error_code: ErrorCode) -> Any:
    """The result of one partition. They do not change, and coordinators give few different ones, all day."""
    return partition_type(partition_index=partition_index, error_code=error_code)
