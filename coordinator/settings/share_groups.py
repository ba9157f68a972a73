"""Settings of share groups, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


class ShareGroupSettings(SettingsPart):
    """Settings of share groups that have none of their own."""

    group_share_max_size: Int32 = Field(
        default=200, ge=1, le=1_000, description="Largest number of members in a share group."
    )
    group_share_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Session timeout of the members of share groups."
    )
    group_share_min_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Shortest session timeout that a share group may have."
    )
    group_share_max_session_timeout_ms: Int32 = Field(
        default=60_000, ge=1, description="Longest session timeout that a share group may have."
    )
    group_share_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="How often the members of share groups are to send heartbeats."
    )
    group_share_min_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="Shortest heartbeat interval that a share group may have."
    )
    group_share_max_heartbeat_interval_ms: Int32 = Field(
        default=15_000, ge=1, description="Longest heartbeat interval that a share group may have."
    )
    group_share_assignors: Literal["simple"] = Field(
        default="simple", description="Assignor of share groups; there is only one."
    )
    group_share_assignment_interval_ms: Int32 = Field(
        default=1_000, ge=0, description="Shortest time between two target assignments of a share group."
    )
    group_share_min_assignment_interval_ms: Int32 = Field(
        default=0, ge=0, description="Shortest assignment interval that a share group may have."
    )
    group_share_max_assignment_interval_ms: Int32 = Field(
        default=15_000, ge=0, description="Longest assignment interval that a share group may have."
    )
    group_share_assignor_offload_enable: bool = Field(
        default=True, description="Accepted for compatibility; has no effect, as in Kafka 4.4."
    )
    group_share_initialize_retry_interval_ms: Int32 = Field(
        default=30_000,
        ge=1,
        description="How long the state of a new share-partition may take to be made before that is tried again.",
    )
    group_share_record_lock_duration_ms: Int32 = Field(
        default=30_000, ge=1_000, le=3_600_000, description="How long a member holds a record that it was given."
    )
    group_share_min_record_lock_duration_ms: Int32 = Field(
        default=15_000, ge=1_000, le=30_000, description="Shortest lock of records that a share group may have."
    )
    group_share_max_record_lock_duration_ms: Int32 = Field(
        default=60_000, ge=30_000, le=3_600_000, description="Longest lock of records that a share group may have."
    )
    group_share_delivery_count_limit: Int32 = Field(
        default=5, ge=2, le=10, description="How often a record is delivered to a share group at the most."
    )
    group_share_min_delivery_count_limit: Int32 = Field(
        default=2, ge=2, le=5, description="Lowest delivery count limit that a share group may have."
    )
    group_share_max_delivery_count_limit: Int32 = Field(
        default=10, ge=5, le=25, description="Highest delivery count limit that a share group may have."
    )
    group_share_partition_max_record_locks: Int32 = Field(
        default=2_000, ge=100, le=10_000, description="How many records of a share-partition are in flight at the most."
    )
    group_share_min_partition_max_record_locks: Int32 = Field(
        default=100, ge=100, le=2_000, description="Lowest limit of records in flight that a share group may have."
    )
    group_share_max_partition_max_record_locks: Int32 = Field(
        default=4_000,
        ge=2_000,
        le=10_000,
        description="Highest limit of records in flight that a share group may have.",
    )
