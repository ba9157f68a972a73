"""Topics that requests about offsets name by their ids, as the newest versions do.

Kafka: KafkaApis, which looks the names up before anything else.
"""

from __future__ import annotations

from typing import TypeVar

from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequestTopic
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequestTopics, OffsetFetchResponseTopics
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequestTopic

T = TypeVar("T", OffsetCommitRequestTopic, TxnOffsetCommitRequestTopic, OffsetFetchRequestTopics)


def with_names(requested: tuple[T, ...], topics: Topics) -> tuple[T, ...]:
    """The topics of a request with their names; one that is not known keeps its id as its name."""
    return tuple(
        topic.model_copy(update={"name": topics.named(topic.topic_id) or topic.topic_id}) for topic in requested
    )


def is_unknown_id(topic: OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic | OffsetFetchRequestTopics) -> bool:
    """Whether no topic had the id of this one, which went through :func:`with_names`."""
    return topic.name == topic.topic_id


def with_ids(
    found: tuple[OffsetFetchResponseTopics, ...], topics: Topics, unknown: set[str]
) -> tuple[OffsetFetchResponseTopics, ...]:
    """The topics of a response with their ids; one that is gone is left out, and an ``unknown`` id stays."""
    return tuple(
        topic.model_copy(update={"topic_id": topic.name if topic.name in unknown else topics.id_of(topic.name)})
        for topic in found
        if topic.name in unknown or topic.name in topics
    )
