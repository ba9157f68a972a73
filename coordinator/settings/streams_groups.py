"""Settings of streams groups, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart


def _check_assignors(names: str) -> str:
    if names != "sticky":
        raise ValueError("there is only one assignor of streams groups: sticky")
    return names


def _check_tags(tags: str) -> str:
    given = [each.strip() for each in tags.split(",")] if tags.strip() else []
    if len(set(given)) < len(given):
        raise ValueError(f"{tags}: a tag is named twice")
    return tags


class StreamsGroupSettings(SettingsPart):
    """Settings of streams groups that have none of their own."""

    group_streams_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Session timeout of the members of streams groups."
    )
    group_streams_min_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Shortest session timeout that a streams group may have."
    )
    group_streams_max_session_timeout_ms: Int32 = Field(
        default=60_000, ge=1, description="Longest session timeout that a streams group may have."
    )
    group_streams_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="How often the members of streams groups are to send heartbeats."
    )
    group_streams_min_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="Shortest heartbeat interval that a streams group may have."
    )
    group_streams_max_heartbeat_interval_ms: Int32 = Field(
        default=15_000, ge=1, description="Longest heartbeat interval that a streams group may have."
    )
    group_streams_max_size: Int32 = Field(
        default=2**31 - 1, ge=1, description="Largest number of members in a streams group."
    )
    group_streams_num_standby_replicas: Int32 = Field(
        default=0, ge=0, description="How many standbys each task with state has."
    )
    group_streams_max_standby_replicas: Int32 = Field(
        default=2, ge=0, description="Most standbys of a task that a streams group may have."
    )
    group_streams_initial_rebalance_delay_ms: Int32 = Field(
        default=3_000, ge=0, description="How long a streams group without members waits for more before it assigns."
    )
    group_streams_assignment_interval_ms: Int32 = Field(
        default=1_000, ge=0, description="Shortest time between two target assignments of a streams group."
    )
    group_streams_min_assignment_interval_ms: Int32 = Field(
        default=0, ge=0, description="Shortest assignment interval that a streams group may have."
    )
    group_streams_max_assignment_interval_ms: Int32 = Field(
        default=15_000, ge=0, description="Longest assignment interval that a streams group may have."
    )
    group_streams_assignors: Annotated[str, AfterValidator(_check_assignors)] = Field(
        default="sticky", description="Assignors of streams groups; there is only one."
    )
    group_streams_rack_aware_assignment_tags: Annotated[str, AfterValidator(_check_tags)] = Field(
        default="", description="Tags that every member of a streams group should have. The assignor does not use them."
    )
    group_streams_task_offset_interval_ms: Int32 = Field(
        default=60_000, ge=15_000, description="How often members report how far the state of their tasks is."
    )
    group_streams_min_task_offset_interval_ms: Int32 = Field(
        default=15_000, ge=1, description="Shortest interval of these reports that a streams group may have."
    )
    group_streams_num_warmup_replicas: Int32 = Field(
        default=2,
        ge=0,
        description="Assigns no warm-up tasks, as in Kafka 4.4. Unless 0, targets are cached by assignment epoch.",
    )
    group_streams_max_warmup_replicas: Int32 = Field(
        default=20, ge=0, description="Most warm-up tasks that a streams group may ask for."
    )
    group_streams_acceptable_recovery_lag: Int64 = Field(
        default=10_000, ge=0, description="Sent to members; has no other effect, as in Kafka 4.4."
    )
    group_streams_assignor_offload_enable: bool = Field(
        default=True, description="Accepted for compatibility; has no effect, as in Kafka 4.4."
    )
