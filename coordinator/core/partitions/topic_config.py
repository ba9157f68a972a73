"""The settings of a topic that its logs obey, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rejoin.coordinator.core.inputs import Millis

UNLIMITED: Final = -1
NEVER: Final = 2**63 - 1
"""The longest time that a setting can have."""

TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionName = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, by the names that Kafka gives them."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: CompressionName = "producer"
    max_message_bytes: int = 1_048_588
    message_timestamp_type: TimestampType = "CreateTime"
    message_timestamp_before_max_ms: Millis = NEVER
    message_timestamp_after_max_ms: Millis = 3_600_000
    min_insync_replicas: int = 1
    retention_ms: Millis = 604_800_000
    retention_bytes: int = UNLIMITED
    segment_bytes: int = 1_073_741_824
    segment_ms: Millis = 604_800_000
    delete_retention_ms: Millis = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: Millis = 0
    max_compaction_lag_ms: Millis = NEVER

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old records are deleted."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def keeps_what_is_produced(self) -> bool:
        """Whether batches are stored as produced: codec, timestamps and keys do not matter to the topic."""
        return (
            self.compression_type == "producer"
            and self.message_timestamp_type == "CreateTime"
            and "compact" not in self.cleanup_policy
        )


DEFAULT: Final = TopicConfig()
