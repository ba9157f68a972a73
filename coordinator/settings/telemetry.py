"""Settings of metrics that clients push (KIP-714)."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


class TelemetrySettings(SettingsPart):
    """Whether metrics of clients are taken, and how much of them."""

    emulator_client_telemetry: bool = Field(
        default=False,
        description="Take metrics that clients push, as a Kafka does whose metric.reporters has a receiver for them.",
    )
    telemetry_max_bytes: Int32 = Field(
        default=1_048_576, ge=1, description="Most bytes of metrics in one PushTelemetry, before and after unpacking."
    )
    emulator_max_client_metrics: Int32 = Field(
        default=1_000,
        ge=1,
        description="How many subscriptions to metrics of clients there may be. A change that makes more is refused.",
    )
