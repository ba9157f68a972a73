"""GetTelemetrySubscriptions (key 71) and PushTelemetry (72): metrics of clients, which a broker asks for (KIP-714)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import ZERO_UUID, Bytes, Int8, Int32, KafkaUuid


class GetTelemetrySubscriptionsRequest(Request):
    """Ask which metrics to push. A client that has no instance id yet sends zeros, and gets one."""

    client_instance_id: KafkaUuid

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return GetTelemetrySubscriptionsResponse(error_code=error)


class GetTelemetrySubscriptionsResponse(Response):
    """Prefixes of the names of metrics, and how to push them. No prefixes: none; ``*``: all."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    client_instance_id: KafkaUuid = ZERO_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: tuple[Int8, ...] = ()
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: bool = False
    requested_metrics: tuple[str, ...] = ()


class PushTelemetryRequest(Request):
    """Metrics in OpenTelemetry's encoding, compressed; the last push of a client that ends is ``terminating``."""

    client_instance_id: KafkaUuid
    subscription_id: Int32
    terminating: bool
    compression_type: Int8
    metrics: Bytes

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        return PushTelemetryResponse(error_code=error)


class PushTelemetryResponse(Response):
    """The metrics were taken, or why not."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
