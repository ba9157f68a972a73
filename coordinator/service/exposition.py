"""The page that Prometheus reads: Kafka's metric names in snake_case, and names of our own for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from rejoin.coordinator.core.views import NodeView
from rejoin.coordinator.service.metrics import ERRORS_TOTAL, Histogram, Metrics, StoreMetrics
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

_STATES: Final = {
    "Stable": "stable",
    "PreparingRebalance": "preparing_rebalance",
    "CompletingRebalance": "completing_rebalance",
    "Assigning": "assigning",
    "Reconciling": "reconciling",
    "Empty": "empty",
    "Dead": "dead",
}
_MANAGER: Final = "kafka_coordinator_group_group_metadata_manager_"
_COORDINATOR: Final = "kafka_server_group_coordinator_metrics_"
_REQUESTS: Final = "kafka_network_request_metrics_"
_PURGATORY: Final = "kafka_server_delayed_operation_purgatory_"

Samples = Iterable[tuple[Mapping[str, str], float]]


@dataclass(frozen=True, slots=True, eq=False)
class NodeCollector(Collector):
    """One scrape of a node: its counters and views."""

    metrics: Metrics
    node: NodeView
    listeners: int
    head: int
    core_failures: int

    def collect(self) -> Iterator[Metric]:
        yield from _groups(self.node)
        yield from _coordinator(self.metrics, self.node)
        yield from _requests(self.metrics)
        yield from _purgatory(self.node)
        yield from _rejoin(self.metrics, self.node)
        yield from _store(self.metrics.store)
        yield from _leases(self.metrics, self.node)
        yield _counter(
            "rejoin_core_failures_total", "Inputs that made the core fail, outside any shard.", self.core_failures
        )
        yield _gauge("rejoin_events_head", "Number of the newest event.", self.head)
        yield _gauge("rejoin_event_listeners", "Listeners that wait for the next event.", self.listeners)


def page(metrics: Metrics, node: NodeView, listeners: int, head: int, core_failures: int, groups: Collector) -> bytes:
    """Everything in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(metrics, node, listeners, head, core_failures))
    registry.register(groups)
    return generate_latest(registry)


def _groups(node: NodeView) -> Iterator[Metric]:
    yield _gauge(_MANAGER + "num_groups", "Groups of this node.", node.groups)
    yield _gauge(_MANAGER + "num_offsets", "Committed offsets of this node.", node.offsets)
    for state, name in _STATES.items():
        yield _gauge(_MANAGER + f"num_groups_{name}", f"Groups in state {state}.", node.groups_by_state.get(state, 0))


def _coordinator(metrics: Metrics, node: NodeView) -> Iterator[Metric]:
    counts: Samples = [({"protocol": kind}, count) for kind, count in node.groups_by_type.items()]
    yield _family("gauge", _COORDINATOR + "group_count", "Groups by protocol.", counts)
    yield _counter(
        _COORDINATOR + "group_completed_rebalance_count",
        "Rebalances that reached Stable.",
        metrics.rebalances_completed,
    )
    yield _counter(_COORDINATOR + "offset_commit_count", "Offsets committed.", metrics.offsets_committed)
    yield _counter(_COORDINATOR + "offset_expiration_count", "Offsets expired.", metrics.offsets_expired)
    yield _counter(_COORDINATOR + "offset_deletion_count", "Offsets deleted on request.", metrics.offsets_deleted)
    states = Counter(partition.state.lower() for partition in node.partitions)
    yield _family(
        "gauge",
        _COORDINATOR + "num_partitions",
        "Offsets partitions of this node.",
        [({"state": state}, states.get(state, 0)) for state in ("loading", "active", "failed")],
    )
    waiting = "queueing included, ms."
    yield _gauge(_COORDINATOR + "partition_load_time_max", f"Longest load, {waiting}", metrics.longest_load_ms)
    average = metrics.load_ms / metrics.loads if metrics.loads else 0
    yield _gauge(_COORDINATOR + "partition_load_time_avg", f"Mean load, {waiting}", average)


def _requests(metrics: Metrics) -> Iterator[Metric]:
    yield _family(
        "counter",
        _REQUESTS + "requests_total",
        "Answers by request and top-level error; none where the answer has no such field.",
        [
            ({"request": name, "error": error}, count)
            for name, api in metrics.apis.items()
            for error, count in sorted(api.answers.items())
        ],
    )
    yield _family(
        "counter",
        ERRORS_TOTAL,
        "Errors in responses by request, including those of single topics, partitions and other resources.",
        [
            ({"request": name, "error": error.name}, count)
            for name, api in metrics.apis.items()
            for error, count in sorted(api.errors.items())
        ],
    )
    yield _histogram(
        _REQUESTS + "total_time_ms",
        "From the request's last byte to its answer, for requests answered at once.",
        {name: api.took for name, api in metrics.apis.items() if any(api.took.counts)},
    )
    yield _histogram(
        _REQUESTS + "remote_time_ms",
        "From the request's last byte to its answer, for requests that waited: JoinGroup, SyncGroup and appends.",
        {name: api.parked for name, api in metrics.apis.items() if any(api.parked.counts)},
    )


def _purgatory(node: NodeView) -> Iterator[Metric]:
    yield _family(
        "gauge",
        _PURGATORY + "purgatory_size",
        "Requests that wait for other members.",
        [({"delayed_operation": "Rebalance"}, node.parked_joins), ({"delayed_operation": "Sync"}, node.parked_syncs)],
    )


def _rejoin(metrics: Metrics, node: NodeView) -> Iterator[Metric]:
    yield _gauge("rejoin_members", "Members of all groups.", node.members)
    yield _gauge("rejoin_parked_joins", "JoinGroup requests that wait.", node.parked_joins)
    yield _gauge("rejoin_parked_syncs", "SyncGroup requests that wait.", node.parked_syncs)
    yield _by_label("rejoin_rebalances_started_total", "Join phases begun, by cause.", "cause", metrics.started)
    yield _counter(
        "rejoin_rebalance_unavailable_ms_total", "Time groups spent rebalancing, ms.", metrics.unavailable_ms
    )
    yield _counter(
        "rejoin_partitions_moved_total", "Partitions moved between remaining members.", metrics.partitions_moved
    )
    yield _counter(
        "rejoin_partitions_regained_total", "Partitions assigned that had no owner before.", metrics.partitions_regained
    )
    fetched = metrics.apis.get("Fetch")
    yield _counter(
        "rejoin_fetch_bytes_out_total", "Bytes of answers to Fetch.", 0 if fetched is None else fetched.bytes_out
    )
    yield _by_label("rejoin_events_total", "Events by name.", "event", metrics.events)
    yield _by_label("rejoin_problems_total", "HTTP problems by status.", "status", metrics.problems)
    yield _by_label(
        "rejoin_refused_requests_total",
        "Requests of Kafka's protocol that ended their connection.",
        "api",
        metrics.refused,
    )
    yield _counter("rejoin_journal_failures_total", "Journal writes that failed.", metrics.journal_failures)
    yield _counter("rejoin_journal_rows_lost_total", "Events missing from the journal.", metrics.journal_rows_lost)


def _store(store: StoreMetrics) -> Iterator[Metric]:
    name = "rejoin_store_"
    yield _histogram(name + "append_ms", "Time until an append is durable, ms.", store.append)
    yield _histogram(name + "batch_appends", "Appends in one write.", store.batch_appends)
    yield _histogram(name + "batch_ms", "Time the store took for one write of several appends, ms.", store.write)
    yield _histogram(name + "load_ms", "Time to load a partition, queueing included, ms.", store.load)
    yield _counter(name + "records_appended_total", "Records that became durable.", store.records_appended)
    yield _counter(name + "records_read_total", "Records read from the store.", store.records_read)
    yield _counter(name + "records_compacted_total", "Superseded records that were removed.", store.records_removed)
    yield _counter(name + "appends_fenced_total", "Appends refused for an outdated epoch.", store.appends_fenced)
    yield _by_label(
        name + "appends_failed_total", "Appends that could not be written, by error.", "error", store.appends_failed
    )
    damaged = [
        ({"topic": topic, "partition": str(partition)}, count)
        for (topic, partition), count in sorted(store.partitions_damaged.items())
    ]
    yield _family("counter", name + "damaged_partitions_total", "Partitions that could not be read.", damaged)
    yield _counter(name + "reconnections_total", "Reconnections to the store.", store.reconnections)


def _leases(metrics: Metrics, node: NodeView) -> Iterator[Metric]:
    led = Counter(partition.topic for partition in node.partitions)
    samples = [({"topic": topic}, led[topic]) for topic in sorted({OFFSETS_TOPIC, *led})]
    yield _family("gauge", "rejoin_partitions_led", "Partitions that this node leads, by topic.", samples)
    yield _by_label(
        "rejoin_leases_total",
        "Leases acquired, released and expired; failures to reach the store; conflicts over this node's id.",
        "what",
        metrics.leases,
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return _family("gauge", name, text, [({}, value)])


def _counter(name: str, text: str, value: float) -> Metric:
    # Some of Kafka's counters are named without _total, which the text format wants of a counter.
    return _family("counter" if name.endswith("_total") else "unknown", name, text, [({}, value)])


def _by_label(name: str, text: str, label: str, counts: Mapping[str, int] | Mapping[int, int]) -> Metric:
    return _family("counter", name, text, [({label: str(value)}, count) for value, count in sorted(counts.items())])


def _bound(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def _family(kind: str, name: str, text: str, samples: Samples) -> Metric:
    metric = Metric(name.removesuffix("_total") if kind == "counter" else name, text, kind)
    for labels, value in samples:
        metric.add_sample(name, dict(labels), value)
    return metric


def _histogram(name: str, text: str, found: Histogram | Mapping[str, Histogram]) -> Metric:
    metric = Metric(name, text, "histogram")
    series = (
        [({}, found)] if isinstance(found, Histogram) else [({"request": key}, each) for key, each in found.items()]
    )
    for labels, histogram in series:
        running = 0
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            running += count
            metric.add_sample(name + "_bucket", {**labels, "le": _bound(bound)}, running)
        metric.add_sample(name + "_sum", dict(labels), round(histogram.total, 3))
        metric.add_sample(name + "_count", dict(labels), running)
    return metric
