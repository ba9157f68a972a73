"""Settings of consumer groups, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


def _lower(text: object) -> object:
    return text.lower() if isinstance(text, str) else text


def _check_assignors(text: str) -> str:
    if not all(part.strip() for part in text.split(",")):
        raise ValueError("expected names of assignors with commas between them, as uniform,range")
    return text


MigrationPolicy = Annotated[Literal["bidirectional", "upgrade", "downgrade", "disabled"], BeforeValidator(_lower)]


class ConsumerGroupSettings(SettingsPart):
    """Settings of consumer groups that have none of their own."""

    group_consumer_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Session timeout of the members of consumer groups."
    )
    group_consumer_min_session_timeout_ms: Int32 = Field(
        default=45_000, ge=1, description="Shortest session timeout that a consumer group may have."
    )
    group_consumer_max_session_timeout_ms: Int32 = Field(
        default=60_000, ge=1, description="Longest session timeout that a consumer group may have."
    )
    group_consumer_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="How often the members of consumer groups are to send heartbeats."
    )
    group_consumer_min_heartbeat_interval_ms: Int32 = Field(
        default=5_000, ge=1, description="Shortest heartbeat interval that a consumer group may have."
    )
    group_consumer_max_heartbeat_interval_ms: Int32 = Field(
        default=15_000, ge=1, description="Longest heartbeat interval that a consumer group may have."
    )
    group_consumer_assignment_interval_ms: Int32 = Field(
        default=1_000, ge=0, description="Shortest time between two target assignments of a consumer group."
    )
    group_consumer_min_assignment_interval_ms: Int32 = Field(
        default=0, ge=0, description="Shortest assignment interval that a consumer group may have."
    )
    group_consumer_max_assignment_interval_ms: Int32 = Field(
        default=15_000, ge=0, description="Longest assignment interval that a consumer group may have."
    )
    group_consumer_max_size: Int32 = Field(
        default=2**31 - 1, ge=1, description="Largest number of members in a consumer group."
    )
    group_consumer_assignors: Annotated[str, AfterValidator(_check_assignors)] = Field(
        default="uniform,range",
        description="Server-side assignors of consumer groups; the first is the default. Others come by entry point.",
    )
    group_consumer_migration_policy: MigrationPolicy = Field(
        default="bidirectional",
        description="Whether classic groups with members become consumer groups, or consumer groups classic ones: "
        "bidirectional, upgrade, downgrade, or disabled.",
    )
    group_consumer_regex_refresh_interval_ms: Int32 = Field(
        default=600_000, ge=10_000, description="How often regular expressions are resolved again."
    )
    group_consumer_assignor_offload_enable: bool = Field(
        default=True, description="Accepted for compatibility; has no effect, as in Kafka 4.4."
    )
