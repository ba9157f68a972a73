"""GetTelemetrySubscriptions and PushTelemetry. Kafka: ClientMetricsManager."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.telemetry.instances import ClientInstance, ClientInstances
from rejoin.coordinator.core.telemetry.reported import FIELDS, reported
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.cluster.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.wire.compression import CompressionType, decompress
from rejoin.protocol.wire.errors import CompressionError

ONE_UUID: Final = f"{ZERO_UUID[:-1]}Q"
RESERVED: Final = (ZERO_UUID, ONE_UUID)
"""Ids that no client has. Kafka: Uuid.RESERVED."""

ACCEPTED: Final = (CompressionType.ZSTD, CompressionType.LZ4, CompressionType.GZIP, CompressionType.SNAPPY)
"""The one to prefer first."""

_CODECS: Final = frozenset(CompressionType)


class TelemetryRequests:
    """Hands out subscriptions to metrics, and takes what clients push."""

    def __init__(self, ctx: StepContext, topics: Topics) -> None:
        self._ctx = ctx
        self.instances = ClientInstances(topics)

    def get_subscriptions(self, token: Token, request: GetTelemetrySubscriptionsRequest, context: Context) -> None:
        instance_id = request.client_instance_id
        if instance_id == ZERO_UUID:
            instance_id = random_uuid(self._ctx.new_id)
        instance = self.instances.of(instance_id, context, self._ctx.now)
        if not instance.may_get(self._ctx.now):
            self._ctx.reply(token, request.error_response(0, ErrorCode.THROTTLING_QUOTA_EXCEEDED))
            return
        instance.last_error = ErrorCode.NONE
        response = GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=ACCEPTED,
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self._ctx.settings.telemetry_max_bytes,
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )
        self._ctx.reply(token, response)

    def push(self, token: Token, request: PushTelemetryRequest, context: Context) -> None:
        if request.client_instance_id in RESERVED:
            self._ctx.reply(token, request.error_response(0, ErrorCode.INVALID_REQUEST))
            return
        instance = self.instances.of(request.client_instance_id, context, self._ctx.now)
        error = self._check(request, instance)
        instance.is_terminating = request.terminating
        if error is ErrorCode.NONE and request.metrics:
            error = self._take(request, context)
        instance.last_error = error
        self._ctx.reply(token, PushTelemetryResponse(error_code=error))

    def _check(self, request: PushTelemetryRequest, instance: ClientInstance) -> ErrorCode:
        """Kafka: ClientMetricsManager.validatePushRequest, in this order."""
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(self._ctx.now) and not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in _CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self._ctx.settings.telemetry_max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _take(self, request: PushTelemetryRequest, context: Context) -> ErrorCode:
        """Take in metrics, or drop them by the setting. Unreadable ones are refused as by a receiver that fails."""
        # Kafka: what unpacks to more than the limit is INVALID_RECORD as well, and unpacking needs no receiver.
        try:
            unpacked = decompress(request.compression_type, request.metrics, self._ctx.settings.telemetry_max_bytes)
        except CompressionError:
            return ErrorCode.INVALID_RECORD
        if not self._ctx.settings.emulator_client_telemetry:
            return ErrorCode.NONE
        from rejoin.protocol.embedded.client_metrics import MetricsProblem, decode_metrics  # noqa: PLC0415

        try:
            found = decode_metrics(unpacked, FIELDS)
        except MetricsProblem:
            return ErrorCode.INVALID_RECORD
        self._ctx.emit(reported(request.client_instance_id, found, context))
        return ErrorCode.NONE
