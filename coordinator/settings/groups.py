"""Settings of classic groups, of offsets and of the group coordinator."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart


class ClassicGroupSettings(SettingsPart):
    """Membership of classic groups; committed offsets and their log."""

    group_min_session_timeout_ms: Int32 = Field(default=6_000, ge=0, description="Shortest session timeout allowed.")
    group_max_session_timeout_ms: Int32 = Field(default=1_800_000, ge=0, description="Longest session timeout allowed.")
    group_initial_rebalance_delay_ms: Int32 = Field(
        default=3_000,
        ge=0,
        description="How long an Empty group waits for more members; each new member extends the wait by this much.",
    )
    group_max_size: Int32 = Field(default=2**31 - 1, ge=1, description="Largest number of members in a group.")
    offsets_topic_num_partitions: Int32 = Field(
        default=50, ge=1, le=10_000, description="Number of offsets partitions; groups are spread over them by hash."
    )
    offset_metadata_max_bytes: Int32 = Field(
        default=4_096, ge=0, description="Longest metadata of a committed offset, in UTF-16 code units."
    )
    offsets_commit_timeout_ms: Int32 = Field(
        default=5_000, ge=1, description="How long an append to the offsets log may take before it fails."
    )
    offsets_retention_minutes: Int32 = Field(
        default=10_080,
        ge=1,
        description="How long offsets are kept after the group is empty, or after the commit if it has no members.",
    )
    offsets_retention_check_interval_ms: Int64 = Field(
        default=600_000, ge=1, description="How often expired offsets and empty groups are removed."
    )
    offsets_topic_replication_factor: Int32 = Field(
        default=3,
        ge=1,
        description="With --brokers: replicas of __consumer_offsets, at most as many as there are brokers. Else "
        "replication is up to the store.",
    )
    group_coordinator_threads: Int32 = Field(
        default=1, ge=1, description="Accepted for compatibility; has no effect. There is one event loop."
    )
    group_coordinator_append_linger_ms: Int32 = Field(
        default=10, ge=0, description="Accepted for compatibility; has no effect. Appends are not delayed."
    )
    group_coordinator_rebalance_protocols: str = Field(
        default="classic,consumer,streams",
        pattern="^classic(,consumer)?(,streams)?$",
        description="Group protocols that are served: classic, and consumer or streams or both behind it.",
    )
