"""Settings of reading logs, and of what a node does with them by itself."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart


class FetchSettings(SettingsPart):
    """Limits of Fetch."""

    fetch_max_bytes: Int32 = Field(
        default=57_671_680, ge=1_024, description="Most bytes in the response to a Fetch, whatever the request allows."
    )
    max_incremental_fetch_session_cache_slots: Int32 = Field(
        default=1_000, ge=0, description="Number of fetch sessions that a node keeps."
    )


class LogSettings(SettingsPart):
    """Retention, compaction, and topics that are made without a partition count."""

    log_retention_check_interval_ms: Int64 = Field(
        default=300_000, ge=1, description="How often records are deleted that a topic keeps no longer."
    )
    log_cleaner_backoff_ms: Int64 = Field(
        default=15_000, ge=0, description="How long the log of a compacted topic waits to be cleaned once it has grown."
    )
    num_partitions: Int32 = Field(
        default=1, ge=1, description="Partitions of a topic that is created without a partition count."
    )
    auto_create_topics_enable: bool = Field(
        default=True, description="Create a missing topic on a Metadata request that allows it."
    )
