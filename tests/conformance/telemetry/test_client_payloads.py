"""Payloads that a Java client and librdkafka pushed say what the clients themselves reported."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2

from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import ClientMetricsReported
from rejoin.protocol.embedded.client_metrics import decode_metrics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from rejoin.protocol.wire.compression import CompressionType, compress
from tests.coordinator.core.driver import DrivenNode
from tests.paths import ROOT

LINES = gzip.decompress((ROOT / "tests" / "golden" / "telemetry" / "clients.jsonl.gz").read_bytes()).splitlines()
RECORDED: dict[str, dict[str, Any]] = {each["client"]: each for each in map(json.loads, LINES)}
CLIENT = f"{'B' * 21}Q"
ERROR_OF_ROUNDING = 1.0


def pushed(payload: bytes, codec: int = CompressionType.NONE) -> tuple[ErrorCode, list[ClientMetricsReported]]:
    """The answer to a push of a payload, and the events of it."""
    driven = DrivenNode(telemetry_max_bytes=100_000, emulator_client_telemetry=True)
    context = Context(0, "app", "/10.0.0.1")
    driven.request("get", GetTelemetrySubscriptionsRequest(client_instance_id=CLIENT), context)
    known: Any = driven.replies["get"]
    request = PushTelemetryRequest(
        client_instance_id=CLIENT,
        subscription_id=known.subscription_id,
        terminating=False,
        compression_type=codec,
        metrics=bytes(compress(codec, payload)),
    )
    driven.request("push", request, context)
    answer: Any = driven.replies["push"]
    return answer.error_code, driven.emitted(ClientMetricsReported)


@pytest.mark.parametrize("client", RECORDED)
def test_values_are_those_that_the_client_reports(client: str) -> None:
    recorded = RECORDED[client]
    found = decode_metrics(base64.b64decode(recorded["payload"]), recorded["own"])
    assert found.values == pytest.approx(recorded["own"], abs=ERROR_OF_ROUNDING)


@pytest.mark.parametrize("codec", CompressionType, ids=lambda codec: codec.name)
def test_a_push_of_a_java_consumer_is_an_event_in_every_codec(codec: CompressionType) -> None:
    recorded = RECORDED["java"]
    error, (event,) = pushed(base64.b64decode(recorded["payload"]), codec)
    own = recorded["own"]
    assert error is ErrorCode.NONE
    assert (event.client_instance_id, event.client_id, event.group_id) == (CLIENT, "app", "measured-java")
    assert event.member_id is not None
    assert event.member_id.startswith("java-")
    assert event.poll_interval_max_ms == own["consumer.time.between.poll.max"]
    assert event.rebalance_latency_max_ms == own["consumer.coordinator.rebalance.latency.max"]
    assert event.commit_latency_max_ms == own["consumer.coordinator.commit.latency.max"]
    assert (event.assigned_partitions, event.failed_rebalances) == (3, 0)


def test_a_push_of_librdkafka_is_an_event_with_its_member() -> None:
    error, (event,) = pushed(base64.b64decode(RECORDED["librdkafka"]["payload"]))
    assert error is ErrorCode.NONE
    assert event.member_id is not None
    assert event.member_id.startswith("librdkafka-")
    assert event.group_id == "measured-librdkafka"
    assert event.assigned_partitions == RECORDED["librdkafka"]["own"]["consumer.coordinator.assigned.partitions"]
    assert event.poll_interval_max_ms is None


def test_hostile_payloads_are_refused_or_read_within_their_bound() -> None:
    for payload in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05\x12", b"\x0b" * 50_000):
        assert pushed(payload) == (ErrorCode.INVALID_RECORD, [])
    for codec in (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD):
        assert pushed(bytes(200_000), codec) == (ErrorCode.INVALID_RECORD, [])
    data = metrics_pb2.MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    for number in range(2_000):
        scope.metrics.add(name=f"org.apache.kafka.m{number}").gauge.data_points.add(as_double=number)
    odd = scope.metrics.add(name="org.apache.kafka.consumer.time.between.poll.max")
    odd.gauge.data_points.add(as_double=float("nan"))
    odd.gauge.data_points.add(as_double=1e300)
    scope.metrics.add(name="org.apache.kafka.consumer.time.between.poll.avg").histogram.data_points.add(count=3)
    scope.metrics.add(name="org.apache.kafka.consumer.coordinator.assigned.partitions").sum.data_points.add(as_int=7)
    error, (event,) = pushed(data.SerializeToString())
    assert error is ErrorCode.NONE
    assert event.poll_interval_max_ms == 2**63 - 1
    assert event.poll_interval_avg_ms is None
    assert event.assigned_partitions == 7
