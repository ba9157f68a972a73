"""Settings of share-partitions and of the share coordinator, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


class ShareRecordSettings(SettingsPart):
    """Locks, deliveries, sessions, dead letters, and the topic that keeps the state of share-partitions."""

    group_share_record_lock_duration_ms: Int32 = Field(
        default=30_000, ge=1_000, le=3_600_000, description="How long a member of a share group may hold a record."
    )
    group_share_min_record_lock_duration_ms: Int32 = Field(
        default=15_000, ge=1_000, le=30_000, description="Shortest lock duration that a share group may have."
    )
    group_share_max_record_lock_duration_ms: Int32 = Field(
        default=60_000, ge=30_000, le=3_600_000, description="Longest lock duration that a share group may have."
    )
    group_share_delivery_count_limit: Int32 = Field(
        default=5, ge=2, le=10, description="How often a record is delivered to a share group at most."
    )
    group_share_min_delivery_count_limit: Int32 = Field(
        default=2, ge=2, le=5, description="Lowest delivery limit that a share group may have."
    )
    group_share_max_delivery_count_limit: Int32 = Field(
        default=10, ge=5, le=25, description="Highest delivery limit that a share group may have."
    )
    group_share_partition_max_record_locks: Int32 = Field(
        default=2_000, ge=100, le=10_000, description="How many records of a share-partition may be in flight."
    )
    group_share_min_partition_max_record_locks: Int32 = Field(
        default=100, ge=100, le=2_000, description="Fewest records in flight that a share group may allow."
    )
    group_share_max_partition_max_record_locks: Int32 = Field(
        default=4_000, ge=2_000, le=10_000, description="Most records in flight that a share group may allow."
    )
    group_share_max_share_sessions: Int32 = Field(
        default=2_000, ge=1, description="How many share sessions a broker has at most."
    )
    errors_deadletterqueue_auto_create_topics_enable: bool = Field(
        default=False, description="Make the topic of a share group's dead letters where it is missing."
    )
    errors_deadletterqueue_topic_name_prefix: str = Field(
        default="dlq.", description="How the names of topics for dead letters begin that are made automatically."
    )
    share_coordinator_state_topic_num_partitions: Int32 = Field(
        default=50, ge=1, le=10_000, description="Number of partitions of __share_group_state."
    )
    share_coordinator_state_topic_replication_factor: Int32 = Field(
        default=3,
        ge=1,
        description="Accepted for compatibility; has no effect. The topic has as many replicas as the cluster allows.",
    )
    share_coordinator_state_topic_min_isr: Int32 = Field(
        default=2, ge=1, description="Accepted for compatibility; has no effect."
    )
    share_coordinator_snapshot_update_records_per_snapshot: Int32 = Field(
        default=500, ge=0, le=500, description="After how many updates the whole state of a share-partition is written."
    )
    share_coordinator_state_topic_segment_bytes: Int32 = Field(
        default=104_857_600, ge=14, description="The setting segment.bytes of __share_group_state."
    )
    share_coordinator_state_topic_prune_interval_ms: Int32 = Field(
        default=300_000, ge=1, description="How often records of __share_group_state are deleted that count no more."
    )
    share_coordinator_cold_partition_snapshot_interval_ms: Int32 = Field(
        default=300_000, ge=1, description="After how long a state that does not change is written anew, once."
    )
