"""The node's settings that are defaults of topics' settings, under Kafka's names. Kafka: ServerTopicConfigSynonyms."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart

_POLICIES: Final = frozenset({"compact", "delete"})


def _check_policy(text: str) -> str:
    if not _POLICIES.issuperset(part.strip() for part in text.split(",") if text):
        raise ValueError("expected delete, compact, or both with a comma")
    return text


CleanupPolicy = Annotated[str, AfterValidator(_check_policy)]


class TopicDefaults(SettingsPart):
    """Settings of a topic that has none of its own."""

    log_cleanup_policy: CleanupPolicy = Field(default="delete", description="Default of cleanup.policy.")
    compression_type: Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"] = Field(
        default="producer", description="Default of the topics' compression.type."
    )
    log_cleaner_delete_retention_ms: Int64 = Field(
        default=86_400_000, ge=0, description="Default of delete.retention.ms."
    )
    log_cleaner_max_compaction_lag_ms: Int64 = Field(
        default=2**63 - 1, ge=1, description="Default of max.compaction.lag.ms."
    )
    log_cleaner_min_cleanable_ratio: float = Field(
        default=0.5, ge=0.0, le=1.0, description="Default of min.cleanable.dirty.ratio."
    )
    log_cleaner_min_compaction_lag_ms: Int64 = Field(default=0, ge=0, description="Default of min.compaction.lag.ms.")
    message_max_bytes: Int32 = Field(default=1_048_588, ge=0, description="Default of max.message.bytes.")
    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = Field(
        default="CreateTime", description="Default of message.timestamp.type."
    )
    log_message_timestamp_after_max_ms: Int64 = Field(
        default=3_600_000, ge=0, description="Default of message.timestamp.after.max.ms."
    )
    log_message_timestamp_before_max_ms: Int64 = Field(
        default=2**63 - 1, ge=0, description="Default of message.timestamp.before.max.ms."
    )
    min_insync_replicas: Int32 = Field(default=1, ge=1, description="Default of the topics' min.insync.replicas.")
    log_retention_bytes: Int64 = Field(default=-1, ge=-(2**63), description="Default of retention.bytes.")
    log_retention_ms: Int64 = Field(
        default=604_800_000, ge=-1, description="Default of retention.ms; -1 keeps records for ever."
    )
    log_segment_bytes: Int32 = Field(default=1_073_741_824, ge=1_048_576, description="Default of segment.bytes.")
    log_roll_ms: Int64 = Field(default=604_800_000, ge=1, description="Default of segment.ms.")


DEFAULT_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "log.cleanup.policy",
        "compression.type": "compression.type",
        "delete.retention.ms": "log.cleaner.delete.retention.ms",
        "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
        "max.message.bytes": "message.max.bytes",
        "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
        "message.timestamp.type": "log.message.timestamp.type",
        "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
        "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
        "min.insync.replicas": "min.insync.replicas",
        "retention.bytes": "log.retention.bytes",
        "retention.ms": "log.retention.ms",
        "segment.bytes": "log.segment.bytes",
        "segment.ms": "log.roll.ms",
    }
)
"""Kafka: ServerTopicConfigSynonyms. The node's setting for each setting of a topic that its logs obey."""


ChangedDefaults: TypeAlias = tuple[tuple[str, str], ...]
"""Settings of topics, each with the default that a node has in place of Kafka's, as text."""


def changed_defaults(settings: TopicDefaults) -> ChangedDefaults:
    """The settings of topics whose default this node changes."""
    found = []
    for name, broker_name in DEFAULT_OF.items():
        field = broker_name.replace(".", "_")
        value = getattr(settings, field)
        if value != TopicDefaults.model_fields[field].default:
            found.append((name, str(value)))
    return tuple(found)
