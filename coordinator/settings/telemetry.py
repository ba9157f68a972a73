"""Settings of metrics that clients push (KIP-714)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

from pydantic import AfterValidator, Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


def _check_decoder(is_on: bool) -> bool:
    if is_on and find_spec("opentelemetry.proto") is None:
        raise ValueError("needs opentelemetry-proto, which is not installed: pip install 'rejoin-kafka[telemetry]'")
    return is_on


class TelemetrySettings(SettingsPart):
    """Whether metrics of clients are taken, and how much of them."""

    emulator_client_telemetry: Annotated[bool, AfterValidator(_check_decoder)] = Field(
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
