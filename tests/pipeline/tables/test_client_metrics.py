"""Metrics of clients stand beside the coordinator's view of the member that measured them."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.tables.client_metrics import client_metrics
from rejoin.pipeline.tables.group_tables import rebalances
from tests.pipeline.events import events_here
from tests.pipeline.tables.scenes import CLIENT_METRICS, A, B


def test_metrics_of_clients_beside_the_view_of_the_coordinator() -> None:
    events = events_here(CLIENT_METRICS)
    table: Any = client_metrics(events, rebalances(events))

    def rows(*columns: str) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in ("at_ms", *columns)) for row in table.to_pylist()]

    assert rows("group_id", "client_instance_id", "member_id", "client_id", "confidence") == [
        (5_000, "g", "ia", A, "a", "exact"),
        (6_000, "g", "ib", B, "b", "inferred"),
        (10_000, "g", "ib", B, "b", "inferred"),
        (10_500, "g", "ia", A, "a", "exact"),
    ]
    assert rows("rebalance_latency_max_ms", "rebalances", "rebalance_max_ms", "generation") == [
        (5_000, 3_005, 1, 3_020, 1),
        (6_000, None, 1, 3_020, 1),
        (10_000, None, 1, 20, 2),
        (10_500, None, 0, None, 2),
    ]
    assert rows("assigned_partitions", "owned_partitions", "rebalance_timeout_ms", "poll_interval_max_ms") == [
        (5_000, 2, 2, 14_000, None),
        (6_000, None, 1, 14_000, 340_000),
        (10_000, 1, 3, 14_000, None),
        (10_500, 0, None, None, None),
    ]
