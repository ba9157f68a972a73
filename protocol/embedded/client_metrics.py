"""Metrics of a client, as PushTelemetry has them: MetricsData of OpenTelemetry in protobuf (KIP-714).

Decoding needs the package ``opentelemetry-proto``, which is loaded with the first payload.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

_PREFIX: Final = "org.apache.kafka."
LONGEST_ATTRIBUTE: Final = 1_024


class MetricsProblem(ValueError):
    """Bytes that are no metrics. The text names the problem."""


class ClientMetrics(NamedTuple):
    """Content of one payload."""

    attributes: dict[str, str]
    """Of the client, by the names in ``ATTRIBUTES``."""
    values: dict[str, float]
    """By names without ``org.apache.kafka.``; of several points the last that is for the whole client."""
    points: int
    """The number of points in it."""


def decode_metrics(payload: bytes | bytearray | memoryview, wanted: Iterable[str]) -> ClientMetrics:
    """The metrics of these names in a payload. Raises :class:`MetricsProblem` for what is no MetricsData.

    Sums are as the client sent them: since its last push where it pushes deltas.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData  # noqa: PLC0415

    try:
        data = MetricsData.FromString(bytes(payload))
    except DecodeError as problem:
        raise MetricsProblem(f"no MetricsData of OpenTelemetry: {problem}") from None
    names = frozenset(wanted)
    attributes: dict[str, str] = {}
    values: dict[str, float] = {}
    count = 0
    for resource in data.resource_metrics:
        attributes |= _attributes(resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = getattr(metric, metric.WhichOneof("data") or "gauge").data_points
                count += len(points)
                name = metric.name.removeprefix(_PREFIX)
                if name in names:
                    for value in _of_client(points):
                        values[name] = value
    return ClientMetrics(attributes, values, count)


def _attributes(pairs: Any) -> dict[str, str]:
    found = {pair.key: pair.value.string_value[:LONGEST_ATTRIBUTE] for pair in pairs if pair.value.string_value}
    # librdkafka has its member id under another name than KIP-714.
    found.setdefault("group_member_id", found.get("member_id", ""))
    return {name: value for name, value in found.items() if name in ATTRIBUTES and value}


ATTRIBUTES: Final = frozenset({"group_id", "group_member_id", "group_instance_id", "client_rack", "transactional_id"})
_OF_PARTS: Final = frozenset({"topic", "partition", "node_id", "node-id"})
"""Labels of points that are for a part of the client."""


def _of_client(points: Any) -> Iterator[float]:
    """Values of the points that are for the whole client; not those that were not measured."""
    for point in points:
        kind = point.WhichOneof("value") if "value" in point.DESCRIPTOR.oneofs_by_name else None
        if kind is not None and not any(pair.key in _OF_PARTS for pair in point.attributes):
            value = float(getattr(point, kind))
            if math.isfinite(value):
                yield value
