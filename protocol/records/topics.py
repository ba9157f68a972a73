"""The records of the topics log: Kafka's metadata records, as far as there is something here for them to say.

Source: Kafka's ``TopicRecord``, ``PartitionRecord``, ``ConfigRecord``, ``RemoveTopicRecord``,
``ProducerIdsRecord`` and ``FeatureLevelRecord``, in the JSON that its log dump prints; those of ``security.py`` are
in the same log.
A partition is the instant from which its synthetic log grows and the records that were there then; one record may
stand for many partitions in a row. The last record of a partition wins. Replicas are there where a controller decides
on each partition.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from rejoin.protocol.message import Struct
from rejoin.protocol.records.security import AnySecurityRecord
from rejoin.protocol.types import Int16, Int32, Int64


class TopicData(Struct):
    """A topic. With ``records_per_second`` the log of each partition is synthetic; without, it has real records."""

    name: str
    topic_id: str
    records_per_second: float | None


class PartitionData(Struct):
    """``partitions`` partitions from ``partition_id`` on: ``base_offset`` records were there at ``started_at`` (ms).

    ``replicas`` are those of each of them; left out, they are as before, or nothing is known of them.
    """

    topic_id: str
    partition_id: Int32
    partitions: Int32 = 1
    started_at: Int64
    base_offset: Int64 = 0
    replicas: tuple[tuple[Int32, ...], ...] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what programs before did not know, where it says nothing."""
        found: dict[str, Any] = write(self)
        if not self.replicas:
            del found["replicas"]
        return found


ConfigResource: TypeAlias = Literal[2, 4, 16, 32]
"""Kind of a resource with settings: a topic, a broker (or all of them), a subscription to client metrics, a group.

Kafka: ConfigResource.Type.
"""

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32


class ConfigData(Struct):
    """A setting of a resource; null means that it has its default again."""

    resource_type: ConfigResource = TOPIC_RESOURCE
    resource_name: str
    name: str
    value: str | None


class RemoveTopicData(Struct):
    """The topic that is gone."""

    topic_id: str


class ProducerIdsData(Struct):
    """A node has all producer ids below ``next_producer_id`` that no node had before."""

    broker_id: Int32
    next_producer_id: Int64


class FeatureLevelData(Struct):
    """The level of a feature, on which all nodes agree."""

    name: str
    feature_level: Int16


class TopicRecord(Struct):
    """A topic is there, still without partitions."""

    type: Literal["TOPIC_RECORD"] = "TOPIC_RECORD"
    version: Literal[0] = 0
    data: TopicData


class PartitionRecord(Struct):
    """Partitions of a topic, new or changed."""

    type: Literal["PARTITION_RECORD"] = "PARTITION_RECORD"
    version: Literal[0] = 0
    data: PartitionData


class ConfigRecord(Struct):
    """A setting of a topic that is there."""

    type: Literal["CONFIG_RECORD"] = "CONFIG_RECORD"
    version: Literal[0] = 0
    data: ConfigData


class RemoveTopicRecord(Struct):
    """A topic and its partitions are gone."""

    type: Literal["REMOVE_TOPIC_RECORD"] = "REMOVE_TOPIC_RECORD"
    version: Literal[0] = 0
    data: RemoveTopicData


class ProducerIdsRecord(Struct):
    """A block of producer ids is taken."""

    type: Literal["PRODUCER_IDS_RECORD"] = "PRODUCER_IDS_RECORD"
    version: Literal[0] = 0
    data: ProducerIdsData


class FeatureLevelRecord(Struct):
    """A feature has another level."""

    type: Literal["FEATURE_LEVEL_RECORD"] = "FEATURE_LEVEL_RECORD"
    version: Literal[0] = 0
    data: FeatureLevelData


AnyTopicsRecord: TypeAlias = (
    TopicRecord
    | PartitionRecord
    | ConfigRecord
    | RemoveTopicRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | AnySecurityRecord
)

TopicsRecord = Annotated[AnyTopicsRecord, Field(discriminator="type")]
"""One entry of the topics log."""

TOPICS_RECORDS: Final[TypeAdapter[tuple[AnyTopicsRecord, ...]]] = TypeAdapter(
    tuple[TopicsRecord, ...], config=ConfigDict(defer_build=True)
)
"""Reads and writes what one change wrote, as a JSON array."""
