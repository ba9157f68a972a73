"""Metrics of a client as an event: those of its consumer that say how it polls, rebalances, commits and fetches.

Source: KIP-714, KIP-1076, and the names in Java's ``metrics()``, with dots.
"""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import ClientMetricsReported
from rejoin.protocol.embedded.client_metrics import ClientMetrics

_COORDINATOR, _FETCHES = "consumer.coordinator", "consumer.fetch.manager"
FIELDS: Final = {
    "consumer.time.between.poll.avg": "poll_interval_avg_ms",
    "consumer.time.between.poll.max": "poll_interval_max_ms",
    f"{_COORDINATOR}.rebalance.latency.avg": "rebalance_latency_avg_ms",
    f"{_COORDINATOR}.rebalance.latency.max": "rebalance_latency_max_ms",
    f"{_COORDINATOR}.failed.rebalance.total": "failed_rebalances",
    f"{_COORDINATOR}.commit.latency.avg": "commit_latency_avg_ms",
    f"{_COORDINATOR}.commit.latency.max": "commit_latency_max_ms",
    f"{_FETCHES}.fetch.rate": "fetch_rate",
    f"{_FETCHES}.fetch.latency.avg": "fetch_latency_avg_ms",
    f"{_FETCHES}.fetch.latency.max": "fetch_latency_max_ms",
    f"{_FETCHES}.records.lag.max": "records_lag_max",
    f"{_COORDINATOR}.assigned.partitions": "assigned_partitions",
}
"""Fields of the event by names of metrics."""

_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_WITH_FRACTION: Final = "fetch_rate"
_LONG: Final = "records_lag_max"


def reported(instance_id: str, metrics: ClientMetrics, context: Context) -> ClientMetricsReported:
    """The event of a push."""
    values: dict[str, Any] = {FIELDS[name]: _number(FIELDS[name], value) for name, value in metrics.values.items()}
    of = metrics.attributes
    return ClientMetricsReported(
        client_instance_id=instance_id,
        client_id=context.client_id,
        group_id=of.get("group_id"),
        member_id=of.get("group_member_id"),
        group_instance_id=of.get("group_instance_id"),
        **values,
    )


def _number(field: str, value: float) -> float:
    """A value in the type of its field: whole milliseconds and counts, within bounds."""
    if field == _WITH_FRACTION:
        return value
    most = _INT64 if field.endswith("_ms") or field == _LONG else _INT32
    return max(-most, min(most, round(value)))
